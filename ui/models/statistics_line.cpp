#include <QCoreApplication>
#include <QLocale>
#include <QStringList>
#include <algorithm>

#include "ui/models/chat.h"

namespace recto::ui {

namespace {

class StatisticsText {
    Q_DECLARE_TR_FUNCTIONS(recto::ui::StatisticsText)
};

QString duration(double seconds) {
    const QLocale locale;
    if (seconds < 1.0) return StatisticsText::tr("%1 ms").arg(locale.toString(seconds * 1000.0, 'f', 0));
    return StatisticsText::tr("%1 s").arg(locale.toString(seconds, 'f', seconds < 10 ? 2 : 1));
}

QString rate(double per_second) {
    return StatisticsText::tr("%1 tok/s").arg(QLocale().toString(per_second, 'f', per_second < 100 ? 1 : 0));
}

QString reason(const MessageRecord& m) {
    if (m.state == MessageState::context_full) return StatisticsText::tr("context full");
    if (m.finish_reason == QStringLiteral("interrupted"))
        return StatisticsText::tr("stopped: Recto ended unexpectedly");
    if (m.state == MessageState::stopped) return StatisticsText::tr("stopped");
    if (m.state == MessageState::failed) return StatisticsText::tr("failed");
    if (m.finish_reason == QStringLiteral("length")) return StatisticsText::tr("token limit reached");
    if (m.finish_reason == QStringLiteral("stop")) return StatisticsText::tr("end of turn");
    return {};
}

}  // namespace

QString statistics_line(const MessageRecord& m) {
    if (m.role != Role::assistant || m.state == MessageState::streaming) return {};
    QStringList parts;
    const AnswerTimings& t = m.timings;
    const QLocale locale;
    if (t.valid) {
        parts << StatisticsText::tr("prompt %1 (%2 cached)")
                     .arg(locale.toString(t.prompt_tokens), locale.toString(t.cached_tokens));
        parts << StatisticsText::tr("queue %1").arg(duration(t.queue_s));
        if (t.output_tokens > 0) parts << StatisticsText::tr("first token %1").arg(duration(t.ttft_s));
        if (t.prefill_tok_s > 0) parts << StatisticsText::tr("prefill %1").arg(rate(t.prefill_tok_s));
        parts << StatisticsText::tr("%1 out").arg(locale.toString(t.output_tokens));
        if (t.decode_tok_s > 0) parts << StatisticsText::tr("decode %1").arg(rate(t.decode_tok_s));
        if (t.paused_s > 0) parts << StatisticsText::tr("paused %1").arg(duration(t.paused_s));
    }
    if (const QString why = reason(m); !why.isEmpty()) parts << why;
    return parts.join(QStringLiteral(" · "));
}

QString statistics_help(const MessageRecord& m) {
    if (m.role != Role::assistant || !m.timings.valid) return {};
    return StatisticsText::tr(
        "p prompt tokens, c of them from the cache, n answer tokens; times are taken in the engine when a "
        "step's tokens "
        "are committed.\n"
        "queue = t(start) − t(request)\n"
        "first token = t(1) − t(request), queue included\n"
        "prefill = (p − c) ÷ (t(1) − t(start))\n"
        "decode = (n − 1) ÷ (t(n) − t(1)), pauses included");
}

QString title_from_text(const QString& text) {
    const QString line = text.trimmed().section(QLatin1Char('\n'), 0, 0).simplified();
    const bool wide = std::any_of(line.begin(), line.end(), [](QChar c) {
        const QChar::Script script = c.script();
        return script == QChar::Script_Han || script == QChar::Script_Hiragana ||
               script == QChar::Script_Katakana || script == QChar::Script_Hangul;
    });
    const qsizetype limit = wide ? 20 : 40;
    if (line.size() <= limit) return line;
    qsizetype cut = wide ? limit : line.lastIndexOf(QLatin1Char(' '), limit);
    if (cut <= 0) cut = limit;
    if (line[cut - 1].isHighSurrogate()) --cut;
    return line.left(cut) + QStringLiteral("…");
}

}  // namespace recto::ui
