#include "ui/four_chats.h"

#include <QCoreApplication>

#include "ui/models/session.h"

namespace recto::ui {
namespace {

QString tr(const char* text) {
    return QCoreApplication::translate("recto::ui", text);
}

}  // namespace

QString shared_system_prompt() {
    return tr(
        "You are a patient guide at a museum of science and technology. Visitors of every age ask you about "
        "what "
        "they see, and you answer in a friendly and simple way. Begin with one sentence that answers the "
        "question. Then explain the idea with an example from daily life, such as cooking, traffic, sport or "
        "the weather. Use short sentences and common words. When a word is technical, say in a few words "
        "what "
        "it means. If a visitor asks about something dangerous, explain it without instructions for doing "
        "it. "
        "If you do not know the answer, say so, and suggest where the visitor could look. Do not make up "
        "names, years or numbers. Keep every answer to about two paragraphs, and end with a question that "
        "makes the visitor curious about the next room of the museum.");
}

QList<QString> shared_prompt_questions() {
    return {tr("Why is the sky blue?"), tr("How does a refrigerator make things cold?"),
            tr("Why do ships made of steel float?"), tr("How does a camera remember a picture?")};
}

QList<Chat*> start_four_chats(Session* session) {
    QList<Chat*> chats;
    for (const QString& question : shared_prompt_questions()) {
        Chat* chat = session->new_chat(shared_system_prompt());
        if (!chat->send(question)) break;
        chats << chat;
    }
    return chats;
}

}  // namespace recto::ui
