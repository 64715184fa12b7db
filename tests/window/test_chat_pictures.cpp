// Pictures for looking at: RECTO_PICTURES names a folder. Without it nothing is written, and what is checked
// is that each look paints something and that light and dark differ.
#include <QTest>
#include <QVBoxLayout>

#include "support/registry.h"
#include "ui/chat/input_box.h"
#include "ui/chat/prompt_popover.h"
#include "ui/chat/sampling_popover.h"
#include "ui/chat/transcript_view.h"
#include "ui/theme/theme.h"
#include "window/test_chat_model.h"

using namespace recto::ui;
using namespace recto::test;

namespace {

QList<FakeMessage> showcase() {
    QList<FakeMessage> list;
    list << FakeMessage{Role::user, QStringLiteral("Why does a paged KV cache waste less memory?")};
    FakeMessage answer{Role::assistant, mixed_answer(1)};
    answer.stats = QString::fromUtf8(
        "prompt 412 (384 from cache) · first token 38 ms · prefill 2,140 tok/s · 74 out · decode 61.2 tok/s "
        "· end of "
        "turn");
    answer.version = 2;
    answer.versions = 3;
    list << answer;
    list << FakeMessage{Role::user, QString::fromUtf8("分頁快取是怎麼運作的？請用表格說明，並附上公式。")};
    FakeMessage chinese{
        Role::assistant,
        QString::fromUtf8(
            "## 分頁快取\n\n**重點，**請看下表：快取分成固定大小的**「區塊」**，用多少拿多少。\n\n"
            "| 方法 | 浪費 | 說明 |\n|:--|--:|---|\n| 連續 | 60–80% | 預留最長的長度 |\n"
            "| 分頁 | `< 4%` | 只浪費最後一個區塊 |\n\n"
            "> 區塊可以共享。\n\n公式 \\(w = b - (t \\bmod b)\\)，其中：\n\n"
            "\\[\nE[w] = \\frac{b-1}{2}\n\\]\n\n1. 第一步\n2. 第二步\n   - [x] 完成\n   - [ ] 未完成\n\n"
            "價格是 $5 和 $6。~~舊的~~ 使用 `vector<int>` 與 <b>標籤</b>。")};
    chinese.state = MessageState::context_full;
    chinese.stats = QStringLiteral("prompt 980 · decode 58.0 tok/s · context full");
    list << chinese;
    list << FakeMessage{Role::user, QStringLiteral("And when the pool is full?")};
    FakeMessage live{Role::assistant,
                     QStringLiteral("One chat is paused, never failed. Its blocks go back to the pool, "
                                    "and when room returns it continues from where it")};
    live.live = true;
    list << live;
    return list;
}

}  // namespace

class TestChatPictures : public QObject {
    Q_OBJECT
  private Q_SLOTS:
    void transcript() {
        QList<QImage> images;
        for (const bool dark : {true, false}) {
            Theme theme;
            theme.set_mode(dark ? ColorMode::dark : ColorMode::light);
            theme.apply_to(*qApp);
            FakeTranscript model;
            model.messages = showcase();
            TranscriptView view(&theme);
            view.resize(790, 1150);
            view.set_model(&model);
            view.set_busy(true);
            view.set_live_line(QString::fromUtf8("decoding · 61 tok/s · 74 tokens"));
            view.show();
            QVERIFY(QTest::qWaitForWindowExposed(&view));
            view.relayout();
            images << view.grab().toImage();
            const QString folder = qEnvironmentVariable("RECTO_PICTURES");
            if (!folder.isEmpty())
                QVERIFY(images.back().save(folder + (dark ? QStringLiteral("/transcript-dark.png")
                                                          : QStringLiteral("/transcript-light.png"))));
        }
        QVERIFY(images[0] != images[1]);
    }

    void pane() {
        QList<QImage> images;
        for (const bool dark : {true, false}) {
            Theme theme;
            theme.set_mode(dark ? ColorMode::dark : ColorMode::light);
            theme.apply_to(*qApp);
            FakeTranscript model;
            model.messages = showcase();
            QWidget pane;
            auto* column = new QVBoxLayout(&pane);
            column->setContentsMargins(0, 0, 0, 0);
            column->setSpacing(0);
            auto* view = new TranscriptView(&theme);
            auto* input = new InputBox(&theme);
            column->addWidget(view, 1);
            column->addWidget(input);
            view->set_model(&model);
            input->set_sampling_summary(sampling_summary(recto::SamplingParams{}));
            input->set_context({dark ? 612 : 1700, 2048, 39});
            input->set_busy(dark, false);
            SamplingPopover sampling(&theme, &pane);
            sampling.set_sampling(recto::SamplingParams{}, {});
            pane.resize(790, 700);
            input->set_pane_height(700);
            pane.show();
            QVERIFY(QTest::qWaitForWindowExposed(&pane));
            if (!dark) {
                input->set_text(QString::fromUtf8("第一行\nsecond line\nthird"));
                input->set_token_count(412, 1636);
                sampling.toggle_above(input->sampling_button());
            }
            view->relayout();
            images << pane.grab().toImage();
            const QString folder = qEnvironmentVariable("RECTO_PICTURES");
            if (!folder.isEmpty())
                QVERIFY(images.back().save(
                    folder + (dark ? QStringLiteral("/pane-dark.png") : QStringLiteral("/pane-light.png"))));
        }
        QVERIFY(images[0] != images[1]);
    }
};

RECTO_TEST_CLASS(TestChatPictures);
#include "test_chat_pictures.moc"
