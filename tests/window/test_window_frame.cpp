// The main window's place on the screen, and what of it follows the palette and the model.
#include <QApplication>
#include <QDataStream>
#include <QLabel>
#include <QScreen>
#include <QScrollArea>
#include <QTest>

#include "support/registry.h"
#include "test_window_fixture.h"
#include "ui/format.h"
#include "ui/language.h"
#include "ui/main_window.h"
#include "ui/theme/theme.h"

using namespace recto;
using namespace recto::ui;
using namespace recto::test;

namespace {

// What QWidget::saveGeometry writes (version 3), of a window on a screen of this width.
QByteArray saved_geometry(const QRect& place, int screen_width) {
    QByteArray bytes;
    QDataStream out(&bytes, QIODevice::WriteOnly);
    out.setVersion(QDataStream::Qt_4_0);
    out << quint32(0x1D9D0CB) << quint16(3) << quint16(0) << place << place << qint32(0) << quint8(0)
        << quint8(0) << qint32(screen_width) << place;
    return bytes;
}

bool has_colour(QWidget* widget, const QColor& colour) {
    const QImage image = widget->grab().toImage().convertToFormat(QImage::Format_RGB32);
    for (int y = 0; y < image.height(); ++y)
        for (int x = 0; x < image.width(); ++x)
            if (image.pixel(x, y) == colour.rgb()) return true;
    return false;
}

}  // namespace

class TestWindowFrame : public QObject {
    Q_OBJECT

    struct Desk {
        explicit Desk(const QByteArray& geometry = {}) {
            theme.apply_to(*qApp);
            if (!geometry.isEmpty()) words.session->settings().set_geometry(geometry);
            words.load();
            window = std::make_unique<MainWindow>(&theme, &language, words.session.get(), LoadChoices{});
            window->show();
            wait_for([this] { return window->current_chat() != nullptr; });
        }
        ~Desk() { window->close(); }
        WordSession words;
        Language language;
        Theme theme;
        std::unique_ptr<MainWindow> window;
    };

  private Q_SLOTS:
    void a_place_from_a_larger_screen_is_fitted_data() {
        QTest::addColumn<QRect>("place");
        QTest::addColumn<int>("screen_width");
        const QRect screen = QGuiApplication::primaryScreen()->availableGeometry();
        const int wide = screen.width() * 5 / 4;
        QTest::newRow("larger") << QRect(0, 0, wide, screen.height() * 2) << wide;
        QTest::newRow("beyond the corner")
            << QRect(screen.right() - 20, screen.bottom() - 20, 900, 700) << wide;
        QTest::newRow("on a screen that is gone") << QRect(-5000, -5000, 700, 600) << screen.width();
        QTest::newRow("small and inside") << QRect(40, 40, 700, 600) << screen.width();
    }
    void a_place_from_a_larger_screen_is_fitted() {
        QFETCH(QRect, place);
        QFETCH(int, screen_width);
        const Desk desk(saved_geometry(place, screen_width));
        const QRect screen = QGuiApplication::primaryScreen()->availableGeometry();
        const QRect now = desk.window->geometry();
        QVERIFY2(screen.contains(now) && desk.window->frameGeometry().top() >= screen.top(),
                 qPrintable(QStringLiteral("%1, %2, %3 × %4")
                                .arg(now.x())
                                .arg(now.y())
                                .arg(now.width())
                                .arg(now.height())));
        if (screen.contains(place)) QCOMPARE(now, place);
    }

    // 1366 pixels at 150 % are 910, and fonts are a little wider there: chats, chat and panel side by side,
    // and whatever the card's name.
    void fits_a_small_screen() {
        Desk desk;
        auto* device = desk.window->findChild<QLabel*>(QStringLiteral("status_device"));
        QTRY_VERIFY(desk.words.session->host()->ready());
        QCoreApplication::processEvents();
        device->setText(QString(300, QLatin1Char('x')));
        QCoreApplication::processEvents();
        const int least = desk.window->minimumSizeHint().width();
        QVERIFY2(least <= 896, qPrintable(QString::number(least)));
        desk.window->resize(910, 480);
        QTRY_VERIFY(device->width() < device->sizeHint().width() && desk.window->width() == 910);
        auto* panel = desk.window->findChild<QScrollArea*>(QStringLiteral("live_panel"));
        QVERIFY2(panel->widget()->minimumSizeHint().width() <= panel->viewport()->width(),
                 qPrintable(QString::number(panel->widget()->minimumSizeHint().width())));
    }

    // The link's underline is of its very colour.
    void the_links_colour_follows_the_theme() {
        Desk desk;
        auto* note = desk.window->findChild<QLabel*>(QStringLiteral("starter_note"));
        QVERIFY(note->isVisible());
        for (const ColorMode mode : {ColorMode::light, ColorMode::dark, ColorMode::light}) {
            const QColor before = desk.theme.palette().accent;
            desk.theme.set_mode(mode);
            const QColor after = desk.theme.palette().accent;
            QVERIFY(has_colour(note, after));
            QVERIFY(before == after || !has_colour(note, before));
        }
    }

    void eight_bit_activations_are_on_screen() {
        LoadedModelInfo info;
        info.device = {"cpu", "Test processor", "avx512 (processor: …)", 2, 0, 0};
        const QString plain = QStringLiteral("no graphics card in use: running on the CPU with AVX-512");
        info.activations = Activations::floating;
        QCOMPARE(device_line(info), plain);
        info.activations = Activations::int8;
        QCOMPARE(device_line(info), plain + QStringLiteral(", INT8 activations"));
        info.device.kind = "cuda";
        info.activations = Activations::token_fp8;
        QCOMPARE(device_line(info), QStringLiteral("Test processor, FP8 activations in prefill"));
    }
};

RECTO_TEST_CLASS(TestWindowFrame);
#include "test_window_frame.moc"
