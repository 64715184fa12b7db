// A chat store in a folder of its own, and small records for it.
#pragma once
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

#include "ui/store/chat_store.h"

namespace recto::test {

inline ui::StorePaths store_paths(const QString& folder) {
    return {folder + QStringLiteral("/data"), folder + QStringLiteral("/state")};
}

inline ui::ChatRecord make_chat(ui::ChatId id, const QString& title) {
    ui::ChatRecord c;
    c.id = id;
    c.title = title;
    c.created = c.updated = QDateTime::fromMSecsSinceEpoch(1'700'000'000'000 + id, Qt::UTC);
    return c;
}

inline ui::MessageRecord make_message(ui::MessageId id, ui::ChatId chat, ui::MessageId parent, ui::Role role,
                                      const QString& text) {
    ui::MessageRecord m;
    m.id = id;
    m.chat = chat;
    m.parent = parent;
    m.role = role;
    m.content = text;
    m.chars = int(text.size());
    m.loaded = true;
    m.created = QDateTime::fromMSecsSinceEpoch(1'700'000'000'000 + id, Qt::UTC);
    return m;
}

// Opens and waits. False with the sentence in *error.
inline bool open_store(ui::ChatStore& store, const QString& folder, QString* error = nullptr) {
    QSignalSpy opened(&store, &ui::ChatStore::opened), failed(&store, &ui::ChatStore::open_failed);
    store.open(store_paths(folder));
    if (!QTest::qWaitFor([&] { return !opened.isEmpty() || !failed.isEmpty(); }, 30'000)) return false;
    if (error && !failed.isEmpty()) *error = failed.first().first().toString();
    return !opened.isEmpty();
}

// Waits until everything asked for before is on disk.
inline bool flush(ui::ChatStore& store) {
    bool done = false, good = false;
    store.flush(&store, [&](bool ok, const QString&) {
        done = true;
        good = ok;
    });
    return QTest::qWaitFor([&] { return done; }, 30'000) && good;
}

inline std::shared_ptr<const ui::ChatContents> load(ui::ChatStore& store, ui::ChatId chat, int page = 100) {
    std::shared_ptr<const ui::ChatContents> contents;
    bool done = false;
    store.load_chat(chat, page, &store, [&](std::shared_ptr<const ui::ChatContents> c, const QString&) {
        contents = std::move(c);
        done = true;
    });
    return QTest::qWaitFor([&] { return done; }, 30'000) ? contents : nullptr;
}

}  // namespace recto::test
