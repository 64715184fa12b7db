// How this chat draws its tokens. Only what the person sets here belongs to the chat; the rest are defaults.
#pragma once
#include <QHash>
#include <QJsonObject>

#include "engine/sample/sampling_params.h"
#include "ui/chat/popover.h"

class QCheckBox;
class QDoubleSpinBox;
class QFormLayout;
class QLabel;
class QLineEdit;
class QPushButton;
class QSpinBox;

namespace recto::ui {

class SamplingPopover : public Popover {
    Q_OBJECT
  public:
    SamplingPopover(Theme* theme, QWidget* window_area);
    // effective: what the next answer would use; own: what the chat itself sets.
    void set_sampling(const SamplingParams& effective, const QJsonObject& own);
    const QJsonObject& own() const { return own_; }

  Q_SIGNALS:
    void sampling_changed(const QJsonObject& own);

  protected:
    void changeEvent(QEvent* event) override;

  private:
    QDoubleSpinBox* add_number(const QString& key, double low, double high, double step);
    QSpinBox* add_count(const QString& key, int low, int high);
    void add_row(const QString& key, QWidget* field);
    void set_value(const QString& key, const QJsonValue& value);
    void retranslate();

    QFormLayout* form_;
    QLabel* title_;
    QDoubleSpinBox *temperature_, *top_p_, *min_p_, *repetition_;
    QSpinBox *top_k_, *max_tokens_;
    QLineEdit* seed_;
    QPushButton* reset_;
    QHash<QString, QLabel*> labels_;
    QJsonObject own_;
    bool filling_ = false;
};

// "temp 0.8 · top-p 0.95", or "greedy".
QString sampling_summary(const SamplingParams& params);

}  // namespace recto::ui
