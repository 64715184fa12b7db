// The window's language, switched while it runs. English is the source; its own file holds only plural forms.
#pragma once
#include <QObject>
#include <QTranslator>

namespace recto::ui {

class Language : public QObject {
    Q_OBJECT
  public:
    explicit Language(QObject* parent = nullptr);
    ~Language() override;
    // "system", "en" or "zh_TW". Widgets get QEvent::LanguageChange.
    void set(const QString& choice);
    QString current() const { return current_; }  // "en" or "zh_TW"

  Q_SIGNALS:
    void changed(const QString& current);

  private:
    QTranslator own_, qt_;
    QString current_;
};

}  // namespace recto::ui
