// A transcript without a chat: the roles of TranscriptModel over a plain list, changed by the test.
#pragma once
#include <QAbstractListModel>
#include <QList>

#include "ui/models/transcript_model.h"

namespace recto::test {

struct FakeMessage {
    ui::Role role = ui::Role::user;
    QString text;
    bool loaded = true;
    bool live = false;
    ui::MessageState state = ui::MessageState::done;
    int version = 1, versions = 1;
    QString stats, error;
};

class FakeTranscript : public QAbstractListModel {
  public:
    using Roles = ui::TranscriptModel::Roles;
    QList<FakeMessage> messages;

    int rowCount(const QModelIndex& parent = {}) const override {
        return parent.isValid() ? 0 : int(messages.size());
    }

    QVariant data(const QModelIndex& index, int role) const override {
        const FakeMessage& m = messages[index.row()];
        switch (role) {
            case Roles::message_id_role:
                return qint64(index.row() + 1);
            case Roles::role_role:
                return int(m.role);
            case Roles::text_role:
                return m.loaded ? m.text : QString();
            case Roles::loaded_role:
                return m.loaded;
            case Roles::chars_role:
                return int(m.text.size());
            case Roles::state_role:
                return int(m.state);
            case Roles::version_role:
                return m.version;
            case Roles::version_count_role:
                return m.versions;
            case Roles::stats_role:
                return m.stats;
            case Roles::stats_help_role:
                return m.stats.isEmpty() ? QString() : QStringLiteral("decode = (n-1)/(tn-t1)");
            case Roles::error_role:
                return m.error;
            case Roles::live_role:
                return m.live;
            default:
                return {};
        }
    }

    void add(const FakeMessage& message) {
        beginInsertRows({}, rowCount(), rowCount());
        messages << message;
        endInsertRows();
    }

    void append_text(int row, const QString& text) {
        messages[row].text += text;
        Q_EMIT dataChanged(index(row), index(row), {Roles::text_role});
    }

    void change(int row, const std::function<void(FakeMessage&)>& how) {
        how(messages[row]);
        Q_EMIT dataChanged(index(row), index(row));
    }

    // Another version: the rows from `first` on go, then others come.
    void replace_tail(int first, const QList<FakeMessage>& tail) {
        beginRemoveRows({}, first, rowCount() - 1);
        messages.resize(first);
        endRemoveRows();
        beginInsertRows({}, first, first + int(tail.size()) - 1);
        messages << tail;
        endInsertRows();
    }

    void reset(QList<FakeMessage> all) {
        beginResetModel();
        messages = std::move(all);
        endResetModel();
    }
};

inline QString mixed_answer(int number) {
    return QStringLiteral(
               "A contiguous cache reserves room for the longest answer it might give. A paged cache takes "
               "one **block** "
               "at a time, so the only waste is the unfilled end of each chat's last block (answer %1):\n\n"
               "```cpp\nwaste = block_size - (tokens % block_size)   // at most 15 of 16 slots\n"
               "table[i] = pool.allocate();                  // any free block will do\n```\n\n"
               "- the first point, with `code` and a [link](https://example.org)\n- the second one\n  - and "
               "a nested one\n\n"
               "Two chats that start with the same system prompt point at the **same** blocks until one of "
               "them "
               "writes.\n\n")
        .arg(number);
}

}  // namespace recto::test
