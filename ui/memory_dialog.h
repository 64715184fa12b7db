// Before a model loads: what it needs, what is free now, what would fit.
#pragma once
#include <QDialog>

#include "ui/host/host_types.h"

namespace recto::ui {

class Theme;

class MemoryDialog : public QDialog {
    Q_OBJECT
  public:
    MemoryDialog(const Theme* theme, const EstimateReport& report, QWidget* parent = nullptr);

    // The context the model is loaded with when a full one does not fit; 0: the model's own.
    static int context_to_load(const EstimateReport& report);
    static bool loadable(const EstimateReport& report);

  Q_SIGNALS:
    void load_confirmed(const recto::ui::ModelRequest& request);
};

}  // namespace recto::ui
