// What the chat store keeps, as values. The tree of messages is never rewritten: an edit or a regenerated
// answer is a sibling.
#pragma once
#include <QByteArray>
#include <QDateTime>
#include <QJsonObject>
#include <QList>
#include <QString>
#include <cstdint>
#include <vector>

namespace recto::ui {

using ChatId = std::int64_t;     // > 0; also the owner of the chat's blocks
using MessageId = std::int64_t;  // > 0; 0: none (the root's parent)

enum class Role : std::uint8_t { system, user, assistant };
QString role_name(Role role);  // as templates and the store spell it

enum class MessageState : std::uint8_t { done, streaming, stopped, failed, context_full };
QString message_state_name(MessageState state);  // as the store spells it

struct ChatRecord {
    ChatId id = 0;
    QString title;
    bool renamed = false;  // by the person: never replaced by a generated one
    QDateTime created, updated;
    QString system_prompt;
    QJsonObject sampling;  // only what this chat sets; the rest are defaults
    QString draft;
    QString model;             // path as it was loaded; empty: whatever is loaded
    QString template_id;       // empty: what the model uses
    double position = 0;       // in the list, ascending; 0: by time
    MessageId shown_root = 0;  // the shown one of the first messages
    QDateTime trashed_at;      // null: not in the trash
};

// DESIGN §9, in seconds by the engine's steady clock; stored as JSON.
struct AnswerTimings {
    int prompt_tokens = 0, cached_tokens = 0, output_tokens = 0, preemptions = 0;
    double queue_s = 0, ttft_s = 0, prefill_tok_s = 0, decode_tok_s = 0, paused_s = 0;
    bool valid = false;
    QJsonObject to_json() const;
    static AnswerTimings from_json(const QJsonObject& json);  // tolerates what is missing or of a wrong type
};

struct MessageRecord {
    MessageId id = 0;
    ChatId chat = 0;
    MessageId parent = 0;       // 0: a first message
    MessageId shown_child = 0;  // 0: the newest
    Role role = Role::user;
    MessageState state = MessageState::done;
    QDateTime created;
    int chars = 0;  // length of content, known before it is loaded
    QString note;   // what recovery has to say about this message; usually empty

    bool loaded = false;  // from here on: valid only when loaded
    QString content;
    std::vector<std::int32_t> token_ids;  // as generated; empty for what a person typed
    QString
        finish_reason;  // "stop", "length", "abort", "error"; "interrupted": the program ended; empty: none
    QString error;      // failed: one sentence
    QString model_name, model_path, model_hash, template_id;
    QJsonObject sampling;
    QString system_prompt;
    AnswerTimings timings;
};

// What a chat opens with: every message without its content, and the contents of the shown path's last page.
struct ChatContents {
    ChatRecord chat;
    QList<MessageRecord> messages;  // in order of creation
};

struct StorePaths {
    QString folder;        // made with mode 0700: chats.sqlite, its lock, backups/
    QString state_folder;  // the flag that tells an unclean end
    QString database() const;
    QString lock() const;
    QString backups() const;
    QString running_flag() const;
};

struct StoreInfo {
    bool read_only = false;   // a newer schema, or no writing allowed
    QStringList notices;      // one sentence each: recovered, migrated, read-only and why
    QList<ChatRecord> chats;  // trashed ones too
    MessageId next_message = 1;
    ChatId next_chat = 1;
};

}  // namespace recto::ui
