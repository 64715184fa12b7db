// Rows ↔ records. Readers tolerate values that no version of Recto wrote, and say so in the record's note.
#pragma once
#include <QList>

#include "ui/store/database.h"
#include "ui/store/records.h"

namespace recto::ui::rows {

QList<ChatRecord> read_chats(Database& db);
QList<MessageRecord> read_skeletons(Database& db, ChatId chat);
// With contents; what still waits in deltas is part of them. Missing ids are left out, and so are rows on
// damaged pages, which are counted.
QList<MessageRecord> read_messages(Database& db, ChatId chat, const QList<MessageId>& ids, int* damaged);

void write_chat(Database& db, const ChatRecord& chat);  // insert or update
void write_draft(Database& db, ChatId chat, const QString& draft);
void insert_message(Database& db, const MessageRecord& message);  // and its parent shows it
void append_delta(Database& db, MessageId message, const QString& text,
                  const std::vector<std::int32_t>& token_ids);
void finish_message(Database& db, const MessageRecord& message);
void reopen_message(Database& db, MessageId message);
void show_child(Database& db, ChatId chat, MessageId parent, MessageId child);

// Answers that were growing when the program ended: their text so far is kept, and they are stopped,
// "interrupted".
int close_interrupted(Database& db);

QByteArray pack_ids(const std::vector<std::int32_t>& ids);  // little-endian, 4 bytes each
std::vector<std::int32_t> unpack_ids(const QByteArray& bytes);

}  // namespace recto::ui::rows
