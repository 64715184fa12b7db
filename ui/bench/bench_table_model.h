// A benchmark report as a table: the models first, then every shape's figures. Grows while the benchmark runs
// without losing the reader's place. Numbers are median ± half the interquartile range of the runs; minimum,
// maximum and their count are in the tool tip.
#pragma once
#include <QAbstractTableModel>
#include <memory>
#include <vector>

#include "engine/bench/compare_report.h"

namespace recto::ui {

class BenchTableModel : public QAbstractTableModel {
    Q_OBJECT
  public:
    enum Column { metric, side_a, side_b, verdict };
    enum Role { formula_role = Qt::UserRole, tone_role, section_role };
    // How a cell is to be seen. Only what is certain has a colour; it also has an arrow and a word.
    enum class Tone : std::uint8_t { normal, dim, better, worse };

    explicit BenchTableModel(QObject* parent = nullptr);
    void set_report(std::shared_ptr<const CompareReport> report);  // null: empty
    const std::shared_ptr<const CompareReport>& report() const { return report_; }
    void retranslate();
    // The models' names, and what the headings hold of them: the view knows the room.
    const QString& name_a() const { return name_a_; }
    const QString& name_b() const { return name_b_; }
    void set_shown_names(const QString& a, const QString& b);

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;  // with one model: the first two
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
    QString row_text(int row) const;     // its cells, tabs between
    QString row_details(int row) const;  // what its tool tips say, in one line; empty: nothing

    struct Cell {
        QString text, tip;
        Tone tone = Tone::normal;
    };
    struct Row {
        QString key;  // the same row in a later report of the same run
        QString label, formula;
        bool section = false;  // a heading over the rows below it
        Cell a, b, verdict;
    };

  private:
    std::shared_ptr<const CompareReport> report_;
    std::vector<Row> rows_;
    QString name_a_, name_b_, shown_a_, shown_b_;
};

// The rows of a report, pure: also what the tests read.
std::vector<BenchTableModel::Row> bench_rows(const CompareReport& report);

}  // namespace recto::ui
