// A layout of fields of one size that fills rows evenly: as many columns as fit, the rows as full as each
// other. Height follows the width.
#pragma once
#include <QLayout>
#include <memory>
#include <vector>

namespace recto::ui {

class EvenFlow : public QLayout {
  public:
    explicit EvenFlow(int gap, QWidget* parent = nullptr);
    ~EvenFlow() override;

    int columns_for(int width) const;

    void addItem(QLayoutItem* item) override;
    int count() const override { return int(items_.size()); }
    QLayoutItem* itemAt(int index) const override;
    QLayoutItem* takeAt(int index) override;
    Qt::Orientations expandingDirections() const override { return Qt::Horizontal; }
    bool hasHeightForWidth() const override { return true; }
    int heightForWidth(int width) const override;
    QSize sizeHint() const override;
    QSize minimumSize() const override;
    void setGeometry(const QRect& area) override;

  private:
    int least_width() const;          // the widest size hint of a visible item
    int row_height(int width) const;  // of items this wide
    std::vector<QLayoutItem*> shown() const;
    int gap_;
    std::vector<std::unique_ptr<QLayoutItem>> items_;
};

}  // namespace recto::ui
