// What of a widget's words is not wholly seen.
#pragma once
#include <QAbstractButton>
#include <QLabel>
#include <QStringList>
#include <QWidget>

namespace recto::test {

// Buttons and single-line labels that are smaller than what they say.
inline QStringList cut_texts(QWidget* root) {
    QStringList cut;
    for (QWidget* widget : root->findChildren<QWidget*>()) {
        if (!widget->isVisibleTo(root) || widget->width() == 0 || widget->height() == 0) continue;
        bool is_cut = false;
        QString text;
        if (auto* button = qobject_cast<QAbstractButton*>(widget)) {
            text = button->text();
            const QFontMetrics metrics(button->font());
            is_cut = !text.isEmpty() && (metrics.horizontalAdvance(text) > button->width() ||
                                         metrics.tightBoundingRect(text).height() > button->height());
        } else if (auto* label = qobject_cast<QLabel*>(widget)) {
            text = label->text();
            is_cut = label->wordWrap() ? label->height() < label->heightForWidth(label->width())
                                       : label->width() < label->minimumSizeHint().width();
        }
        if (is_cut) cut << QStringLiteral("%1: %2").arg(widget->objectName(), text);
    }
    return cut;
}

}  // namespace recto::test
