#include "ui/four_chats.h"

#include <QCoreApplication>

#include "ui/models/session.h"

namespace recto::ui {
namespace {

// Two paragraphs, as the prompt asks for, are about 160 tokens of the starter model's, in Chinese 380
// (measured on the prompt itself). The starter does not keep to that, and four answers to the end of the
// context would keep every core busy for minutes.
constexpr int longest_answer_tokens = 512;

// In the chat's own sampling, where the person sees it and may change it. A shorter limit of theirs stays.
void bound_answer(Chat& chat) {
    const auto limit = chat.effective_sampling().max_tokens;
    if (!limit || *limit > longest_answer_tokens)
        chat.set_sampling({{QStringLiteral("max_tokens"), longest_answer_tokens}});
}

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
        bound_answer(*chat);
        if (!chat->send(question)) break;
        chats << chat;
    }
    return chats;
}

}  // namespace recto::ui
