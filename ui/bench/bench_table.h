// The table of a benchmark report: label and formula, A, B, verdict. Arrow keys move over rows, Tab leaves,
// Ctrl+C copies the chosen rows.
#pragma once
#include <QTableView>

#include "ui/bench/bench_table_model.h"

namespace recto::ui {

class Theme;

class BenchTable : public QTableView {
    Q_OBJECT
  public:
    BenchTable(const Theme* theme, QWidget* parent = nullptr);
    BenchTableModel* table() const { return model_; }
    void set_report(std::shared_ptr<const CompareReport> report);

  protected:
    void keyPressEvent(QKeyEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void changeEvent(QEvent* event) override;
    void contextMenuEvent(QContextMenuEvent* event) override;

  private:
    void copy_rows() const;
    void restyle();
    void retranslate();
    void arrange();  // column widths, row heights, headings across
    const Theme* theme_;
    BenchTableModel* model_;
};

}  // namespace recto::ui
