// The workload of a benchmark: a preset or own numbers, and the device.
#pragma once
#include <QFrame>
#include <vector>

#include "ui/models/bench_plan.h"

class QComboBox;
class QLabel;
class QLineEdit;
class QSpinBox;

namespace recto::ui {

class EvenFlow;
class Theme;

class WorkloadForm : public QFrame {
    Q_OBJECT
  public:
    WorkloadForm(const Theme* theme, QWidget* parent = nullptr);
    void set_plan(const BenchPlan& plan);
    // The form's values in `plan`; its models stay. Fields that problem() names keep what `plan` has.
    void fill(BenchPlan& plan) const;
    QString problem() const;  // one sentence about what was typed; empty: nothing is wrong

  Q_SIGNALS:
    void changed();

  protected:
    void changeEvent(QEvent* event) override;

  private:
    struct Field {
        QLabel* label;
        QWidget* field;
    };
    void add_field(QWidget* field, const char* name);
    QSpinBox* add_count(const char* name, int least, int most);
    QLineEdit* add_list(const char* name, int least, int most);
    void take_preset();
    void show_preset();
    void show_problem();
    void retranslate();
    void restyle();
    const Theme* theme_;
    EvenFlow* flow_;
    std::vector<Field> fields_;
    QComboBox *preset_, *device_;
    QSpinBox *prompt_, *output_, *repeats_;
    QLineEdit *sequences_, *depths_;
    QLabel* problem_;
    bool filling_ = false;
};

}  // namespace recto::ui
