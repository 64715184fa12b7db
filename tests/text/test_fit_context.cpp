// What of a conversation is kept when it has outgrown the context. Each word is one token here, so that the
// expected counts can be added up by hand.
#include <QTest>
#include <map>
#include <sstream>

#include "engine/text/fit_context.h"
#include "kernels/error.h"
#include "support/registry.h"

using namespace recto;

namespace {

struct Conversation {
    std::vector<std::string> roles;
    std::vector<int> tokens;  // of each message
    int fixed = 3;            // what the template adds

    EncodeConversation encode() const {
        return [this](std::span<const std::size_t> left_out) {
            std::vector<std::int32_t> ids(std::size_t(fixed), -1);
            for (std::size_t i = 0; i < roles.size(); ++i)
                if (!std::ranges::binary_search(left_out, i))
                    ids.insert(ids.end(), std::size_t(tokens[i]), std::int32_t(i));
            return ids;
        };
    }
};

// system 10, then turns of user 5 and assistant 15, and a last question of 5.
Conversation long_talk(int turns, bool system = true) {
    Conversation c;
    if (system) c.roles.push_back("system"), c.tokens.push_back(10);
    for (int i = 0; i < turns; ++i) {
        c.roles.insert(c.roles.end(), {"user", "assistant"});
        c.tokens.insert(c.tokens.end(), {5, 15});
    }
    c.roles.push_back("user");
    c.tokens.push_back(5);
    return c;
}

QString refusal(const Conversation& c, const ContextLimit& limit) {
    try {
        fit_context(c.roles, c.encode(), limit);
    } catch (const Error& e) {
        return e.kind() == ErrorKind::argument ? QString::fromUtf8(e.what()) : QStringLiteral("wrong kind");
    }
    return QStringLiteral("fits");
}

}  // namespace

class TestFitContext : public QObject {
    Q_OBJECT
  private slots:
    void whatFitsIsKeptWhole() {
        const Conversation c = long_talk(4);  // 3 + 10 + 80 + 5 = 98
        for (const ContextEnd end : {ContextEnd::stop, ContextEnd::truncate, ContextEnd::drop_oldest}) {
            const FittedContext f = fit_context(c.roles, c.encode(), {end, 118, 20});
            QCOMPARE(f.ids.size(), std::size_t(98));
            QVERIFY(f.left_out.empty());
            QCOMPARE(f.left_out_tokens, 0);
        }
        QCOMPARE(refusal(c, {ContextEnd::stop, 117, 20}),
                 QStringLiteral(
                     "the conversation has 98 tokens, but the context holds 117, of which 20 are kept for "
                     "the answer: shorten it, or let the oldest turns be left out"));
    }

    void truncateKeepsTheEnd() {
        const Conversation c = long_talk(4);
        const auto whole = c.encode()({});
        const FittedContext f = fit_context(c.roles, c.encode(), {ContextEnd::truncate, 60, 20});
        QVERIFY(f.ids == std::vector<std::int32_t>(whole.end() - 40, whole.end()));
        QCOMPARE(f.left_out_tokens, 58);
        QVERIFY(f.left_out.empty());
    }

    // Room 180: of 10 turns (218 tokens) so many go that at most 90 tokens stay: 3 + 10 + 3 · 20 + 5 = 78.
    void dropOldestIsOneLargeCutAtATurn() {
        const Conversation c = long_talk(10);
        const FittedContext f = fit_context(c.roles, c.encode(), {ContextEnd::drop_oldest, 200, 20});
        QCOMPARE(f.ids.size(), std::size_t(78));
        QCOMPARE(f.left_out_tokens, 218 - 78);
        std::vector<std::size_t> expected;
        for (std::size_t i = 1; i <= 14; ++i)
            expected.push_back(i);
        QVERIFY(f.left_out == expected);  // the system message stays, a user's message follows it
        QCOMPARE(c.roles[f.left_out.back() + 1], std::string("user"));
    }

    void theNewestMessageIsNeverLeftOut() {
        Conversation c = long_talk(3);
        c.tokens.back() = 100;  // with the system message 113
        const FittedContext f = fit_context(c.roles, c.encode(), {ContextEnd::drop_oldest, 140, 20});
        QCOMPARE(f.ids.size(), std::size_t(113));
        QCOMPARE(f.left_out.size(), std::size_t(6));
        QCOMPARE(refusal(c, {ContextEnd::drop_oldest, 130, 20}),
                 QStringLiteral(
                     "the newest message, with the system prompt, has 113 tokens, but the context holds 130, "
                     "of which 20 are kept for the answer: shorten it, or load the model with a longer "
                     "context"));
        c.roles.back() = "assistant";  // an answer that goes on: its question stays with it
        const FittedContext g = fit_context(c.roles, c.encode(), {ContextEnd::drop_oldest, 160, 20});
        QCOMPARE(c.roles[g.left_out.back() + 1], std::string("user"));
        QVERIFY(g.left_out.back() < c.roles.size() - 2);
    }

    void withoutASystemMessageTheFirstTurnGoesFirst() {
        const Conversation c = long_talk(5, false);  // 108
        const FittedContext f = fit_context(c.roles, c.encode(), {ContextEnd::drop_oldest, 100, 1});
        QCOMPARE(f.left_out.front(), std::size_t(0));
        QCOMPARE(f.ids.size(), std::size_t(3 + 2 * 20 + 5));
    }
};

RECTO_TEST_CLASS(TestFitContext);
#include "test_fit_context.moc"
