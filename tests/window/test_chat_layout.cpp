// The transcript's layout without a widget: cost, anchoring, positions.
#include <QElapsedTimer>
#include <QRandomGenerator>
#include <QTest>

#include "support/registry.h"
#include "ui/chat/transcript_layout.h"
#include "ui/theme/palette.h"
#include "window/test_chat_model.h"

using namespace recto::ui;
using namespace recto::test;

namespace {

struct Transcript {
    Palette palette = make_palette(true);
    std::vector<QString> texts;
    std::vector<MessageData> rows;
    TranscriptLayout layout;

    Transcript() {
        layout.context.palette = &palette;
        layout.text = [this](int row) { return texts[size_t(row)]; };
        layout.set_viewport(720, 600);
    }

    void add(Role role, const QString& text, bool live = false) {
        MessageData data;
        data.id = MessageId(texts.size()) + 1;
        data.role = role;
        data.loaded = true;
        data.live = live;
        data.chars = int(text.size());
        texts.push_back(text);
        rows.push_back(data);
    }

    void open() {
        layout.insert(0, rows);
        layout.scroll_to_end();
        layout.lay_out();
    }
};

// What the reader sees at the top of the viewport: which letter, and how far above or below the edge.
std::pair<TextPlace, qreal> top_line(TranscriptLayout& layout) {
    const TextPlace place = layout.place_at({0, layout.offset() + 40});
    return {place, layout.place_rect(place).top() - layout.offset()};
}

}  // namespace

class TestChatLayout : public QObject {
    Q_OBJECT
  private Q_SLOTS:
    // The aim of DESIGN §8: a generated 300,000-token chat (about 1.2 million characters) opens in 0.3 s.
    void a_300k_token_chat_opens_at_once_data() {
        QTest::addColumn<int>("messages");
        QTest::newRow("600 messages") << 600;
        QTest::newRow("one answer") << 2;
    }
    void a_300k_token_chat_opens_at_once() {
        QFETCH(int, messages);
        Transcript t;
        const int answers = messages / 2;
        for (int i = 0; i < answers; ++i) {
            QString answer;
            while (answer.size() < 1'200'000 / answers)
                answer += mixed_answer(i);
            t.add(Role::user, QStringLiteral("question %1").arg(i));
            t.add(Role::assistant, answer);
        }
        QElapsedTimer timer;
        timer.start();
        t.open();
        const qint64 opened_us = timer.nsecsElapsed() / 1000;
        const auto blocks = t.layout.item(t.layout.count() - 1).footer();
        qInfo("300,000 tokens in %d messages open in %.1f ms; %lld blocks laid out, the last message has %d",
              messages, double(opened_us) / 1000, (long long)t.layout.laid_out(), blocks);
        QVERIFY(t.layout.laid_out() < 60);
        QVERIFY(opened_us < 300'000);
        timer.restart();
        t.layout.scroll_to(0);
        t.layout.lay_out();
        qInfo("jump to the start: %.1f ms", double(timer.nsecsElapsed()) / 1e6);
        QCOMPARE(t.layout.offset(), 0.0);
        QVERIFY(timer.elapsed() < 300);
    }

    void layouts_far_away_are_given_back() {
        Transcript t;
        for (int i = 0; i < 400; ++i)
            t.add(Role::assistant, mixed_answer(i));
        t.open();
        while (t.layout.offset() > 0) {
            t.layout.scroll_by(-500);
            t.layout.lay_out();
        }
        QVERIFY(t.layout.laid_out() < 700);
        QVERIFY(t.layout.total_height() > 400 * 200);
    }

    void estimates_are_near_what_is_measured() {
        Transcript t;
        for (int i = 0; i < 60; ++i)
            t.add(Role::assistant, mixed_answer(i));
        t.open();
        const qreal estimated = t.layout.total_height();
        for (int row = 0; row < t.layout.count(); ++row) {
            t.layout.ensure_parsed(row);
            for (int part = 0; part < t.layout.item(row).part_count(); ++part)
                t.layout.item(row).measure(part, t.layout.context);
        }
        qreal real = 0;
        for (int row = 0; row < t.layout.count(); ++row)
            real += t.layout.item(row).height() + 16;
        QVERIFY2(std::abs(estimated - real) < 0.25 * real,
                 qPrintable(QStringLiteral("estimated %1, real %2").arg(estimated).arg(real)));
    }

    // Scrolling up into messages that were never laid out: each step moves the text by exactly the step,
    // whatever the estimates were.
    void scrolling_up_moves_the_text_by_what_was_asked() {
        Transcript t;
        QRandomGenerator random(3);
        for (int i = 0; i < 80; ++i) {
            QString text;
            for (int k = random.bounded(1, 6); k > 0; --k)
                text += mixed_answer(i);
            t.add(i % 2 ? Role::assistant : Role::user, i % 2 ? text : QStringLiteral("short %1").arg(i));
        }
        t.open();
        for (int step = 0; step < 300 && t.layout.offset() > 100; ++step) {
            const auto [place, before] = top_line(t.layout);
            const int dy = random.bounded(5, 200);
            if (t.layout.offset() <= dy) break;
            t.layout.scroll_by(-dy);
            t.layout.lay_out();
            const qreal after = t.layout.place_rect(place).top() - t.layout.offset();
            QVERIFY2(
                std::abs(after - before - dy) <= 1.5,
                qPrintable(
                    QStringLiteral("step %1: asked %2, moved %3").arg(step).arg(dy).arg(after - before)));
        }
    }

    void growth_above_and_below_keeps_the_line_fixed() {
        Transcript t;
        for (int i = 0; i < 40; ++i)
            t.add(Role::assistant, mixed_answer(i), i == 39);
        t.open();
        t.layout.scroll_by(-2000);
        t.layout.lay_out();
        const auto [place, before] = top_line(t.layout);
        t.texts[39] += mixed_answer(99).repeated(20);
        t.layout.text_changed(39);
        t.layout.lay_out();
        QCOMPARE(t.layout.place_rect(place).top() - t.layout.offset(), before);
        t.layout.set_editor_height(3, 900);  // something above grows
        t.layout.lay_out();
        QCOMPARE(t.layout.place_rect(place).top() - t.layout.offset(), before);
    }

    void a_long_open_block_is_laid_out_four_times_a_second_at_most() {
        Transcript t;
        t.add(Role::assistant, QStringLiteral("word ").repeated(1200),
              true);  // one paragraph of 6,000 characters
        t.open();
        const int before = t.layout.item(0).text_length(0);
        t.texts[0] += QStringLiteral("more ");
        const int wait = t.layout.text_changed(0);
        QVERIFY(wait > 0 && wait <= MessageItem::relayout_interval_ms);
        QCOMPARE(t.layout.item(0).text_length(0), before);
        QTRY_COMPARE(t.layout.text_changed(0), 0);  // the time comes by itself
        QVERIFY(t.layout.item(0).text_length(0) > before);
    }

    void places_and_rectangles_agree() {
        Transcript t;
        t.add(Role::user, QStringLiteral("hello there"));
        t.add(Role::assistant, mixed_answer(1));
        t.open();
        for (int part = 0; part < t.layout.item(1).footer(); ++part) {
            const int length = t.layout.item(1).text_length(part);
            for (const int offset : {0, length / 2}) {
                const TextPlace place{1, part, offset};
                const QRectF rect = t.layout.place_rect(place);
                QVERIFY(t.layout.place_at(rect.center()) == place);
            }
        }
    }

    void selected_text_reads_well() {
        Transcript t;
        t.add(Role::user, QStringLiteral("one\ntwo"));
        t.add(Role::assistant,
              QStringLiteral("# T\n\n- **a**\n- b\n\n```\nx = 1\n```\n\n| p | q |\n|---|---|\n| 1 | 2 |\n"));
        t.open();
        QCOMPARE(t.layout.selected_text(t.layout.first_place(), t.layout.last_place()),
                 QString::fromUtf8("one\ntwo\n\nT\n\n• a\n• b\n\nx = 1\n\np\tq\n1\t2"));
        QCOMPARE(t.layout.selected_text({0, 0, 1}, {0, 0, 5}), QStringLiteral("ne\nt"));
    }
};

RECTO_TEST_CLASS(TestChatLayout);
#include "test_chat_layout.moc"
