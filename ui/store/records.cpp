#include "ui/store/records.h"

#include <QDir>

namespace recto::ui {

QString role_name(Role role) {
    switch (role) {
        case Role::system:
            return QStringLiteral("system");
        case Role::user:
            return QStringLiteral("user");
        case Role::assistant:
            return QStringLiteral("assistant");
    }
    return {};
}

QString message_state_name(MessageState state) {
    switch (state) {
        case MessageState::done:
            return QStringLiteral("done");
        case MessageState::streaming:
            return QStringLiteral("streaming");
        case MessageState::stopped:
            return QStringLiteral("stopped");
        case MessageState::failed:
            return QStringLiteral("failed");
        case MessageState::context_full:
            return QStringLiteral("context_full");
    }
    return {};
}

QJsonObject AnswerTimings::to_json() const {
    if (!valid) return {};
    return {{QStringLiteral("prompt_tokens"), prompt_tokens},
            {QStringLiteral("cached_tokens"), cached_tokens},
            {QStringLiteral("output_tokens"), output_tokens},
            {QStringLiteral("preemptions"), preemptions},
            {QStringLiteral("queue_s"), queue_s},
            {QStringLiteral("ttft_s"), ttft_s},
            {QStringLiteral("prefill_tok_s"), prefill_tok_s},
            {QStringLiteral("decode_tok_s"), decode_tok_s},
            {QStringLiteral("paused_s"), paused_s}};
}

AnswerTimings AnswerTimings::from_json(const QJsonObject& json) {
    AnswerTimings t;
    t.valid = json.contains(QStringLiteral("output_tokens"));
    t.prompt_tokens = json.value(QStringLiteral("prompt_tokens")).toInt();
    t.cached_tokens = json.value(QStringLiteral("cached_tokens")).toInt();
    t.output_tokens = json.value(QStringLiteral("output_tokens")).toInt();
    t.preemptions = json.value(QStringLiteral("preemptions")).toInt();
    t.queue_s = json.value(QStringLiteral("queue_s")).toDouble();
    t.ttft_s = json.value(QStringLiteral("ttft_s")).toDouble();
    t.prefill_tok_s = json.value(QStringLiteral("prefill_tok_s")).toDouble();
    t.decode_tok_s = json.value(QStringLiteral("decode_tok_s")).toDouble();
    t.paused_s = json.value(QStringLiteral("paused_s")).toDouble();
    return t;
}

QString StorePaths::database() const {
    return QDir(folder).filePath(QStringLiteral("chats.sqlite"));
}
QString StorePaths::lock() const {
    return QDir(folder).filePath(QStringLiteral("chats.sqlite.lock"));
}
QString StorePaths::backups() const {
    return QDir(folder).filePath(QStringLiteral("backups"));
}
QString StorePaths::running_flag() const {
    return QDir(state_folder).filePath(QStringLiteral("chats.open"));
}

}  // namespace recto::ui
