// The first minute's demonstration: four chats whose system prompt is the same, so that its blocks are
// shared.
#pragma once
#include <QList>
#include <QString>

namespace recto::ui {

class Chat;
class Session;

QString shared_system_prompt();            // several blocks long
QList<QString> shared_prompt_questions();  // four

// Makes the chats and sends each its question; an answer ends after 512 tokens at the latest. Empty when the
// chats cannot send now.
QList<Chat*> start_four_chats(Session* session);

}  // namespace recto::ui
