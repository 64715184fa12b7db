// A chat's messages as a tree, with the path that is shown. Pure data.
#pragma once
#include <QList>
#include <unordered_map>
#include <vector>

#include "ui/store/records.h"

namespace recto::ui {

class MessageTree {
  public:
    // A node whose parent is unknown, or that is its own ancestor, hangs under the root with a note.
    void reset(const QList<MessageRecord>& messages, MessageId shown_root);
    // As the newest child of its parent, and shown. The parent must be there (or 0).
    void add(const MessageRecord& message);

    bool contains(MessageId id) const { return nodes_.count(id) != 0; }
    const MessageRecord& at(MessageId id) const;
    MessageRecord& at(MessageId id);
    int size() const { return int(nodes_.size()); }
    MessageId shown_root() const { return root_.shown; }

    const std::vector<MessageId>& path() const { return path_; }  // shown messages from first to last
    MessageId leaf() const { return path_.empty() ? 0 : path_.back(); }
    int row(MessageId id) const;                                 // on the path; -1: not shown
    const std::vector<MessageId>& versions(MessageId id) const;  // siblings with itself, oldest first
    int version(MessageId id) const;                             // 0 …
    // Shows `id` among its siblings. Returns the first row that changed; -1: none.
    int show(MessageId id);

  private:
    struct Node {
        MessageRecord record;
        std::vector<MessageId> children;
    };
    struct Root {
        std::vector<MessageId> children;
        MessageId shown = 0;
    };
    std::vector<MessageId>& children_of(MessageId parent);
    MessageId shown_of(MessageId parent) const;
    void set_shown(MessageId parent, MessageId child);
    void rebuild_path();
    Root root_;
    std::unordered_map<MessageId, Node> nodes_;
    std::vector<MessageId> path_;
    std::unordered_map<MessageId, int> rows_;
};

}  // namespace recto::ui
