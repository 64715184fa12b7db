// Sentences of the store that a person reads; translated on whatever thread they arise.
#pragma once
#include <QCoreApplication>

namespace recto::ui {

class StoreText {
    Q_DECLARE_TR_FUNCTIONS(recto::ui::StoreText)
};

}  // namespace recto::ui
