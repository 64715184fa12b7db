// What to do for better answers than the starter model's: models that fit this machine, and how they get
// here.
#pragma once
#include <QDialog>

namespace recto::ui {

class Theme;

class BetterAnswersDialog : public QDialog {
    Q_OBJECT
  public:
    BetterAnswersDialog(const Theme* theme, std::uint64_t free_bytes, const QString& models_folder,
                        QWidget* parent = nullptr);

  Q_SIGNALS:
    void open_file_wanted();
    void open_folder_wanted();
};

}  // namespace recto::ui
