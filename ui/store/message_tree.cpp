#include "ui/store/message_tree.h"
#include "ui/store/store_text.h"

#include <algorithm>
#include <cassert>

namespace recto::ui {

void MessageTree::reset(const QList<MessageRecord>& messages, MessageId shown_root) {
    nodes_.clear();
    root_ = {};
    for (const MessageRecord& message : messages)
        nodes_[message.id].record = message;
    for (const MessageRecord& message : messages) {
        Node& node = nodes_.at(message.id);
        // Ids ascend with time, so a parent that is not older is damage: it would close a ring.
        const bool orphan = node.record.parent != 0 &&
                            (nodes_.count(node.record.parent) == 0 || node.record.parent >= message.id);
        if (orphan) {
            node.record.parent = 0;
            node.record.note += StoreText::tr("The message that this one answers is missing from the file.");
        }
        children_of(node.record.parent).push_back(message.id);
    }
    root_.shown = shown_root;
    rebuild_path();
}

void MessageTree::add(const MessageRecord& message) {
    assert(message.parent == 0 || contains(message.parent));
    nodes_[message.id].record = message;
    children_of(message.parent).push_back(message.id);
    set_shown(message.parent, message.id);
    rebuild_path();
}

const MessageRecord& MessageTree::at(MessageId id) const {
    return nodes_.at(id).record;
}
MessageRecord& MessageTree::at(MessageId id) {
    return nodes_.at(id).record;
}

std::vector<MessageId>& MessageTree::children_of(MessageId parent) {
    return parent == 0 ? root_.children : nodes_.at(parent).children;
}

// The stored choice, or the newest where there is none (or a lost one).
MessageId MessageTree::shown_of(MessageId parent) const {
    const auto& children = parent == 0 ? root_.children : nodes_.at(parent).children;
    if (children.empty()) return 0;
    const MessageId stored = parent == 0 ? root_.shown : nodes_.at(parent).record.shown_child;
    return std::find(children.begin(), children.end(), stored) != children.end() ? stored : children.back();
}

void MessageTree::set_shown(MessageId parent, MessageId child) {
    if (parent == 0)
        root_.shown = child;
    else
        nodes_.at(parent).record.shown_child = child;
}

void MessageTree::rebuild_path() {
    path_.clear();
    rows_.clear();
    for (MessageId id = shown_of(0); id != 0; id = shown_of(id)) {
        rows_[id] = int(path_.size());
        path_.push_back(id);
    }
}

int MessageTree::row(MessageId id) const {
    const auto at = rows_.find(id);
    return at == rows_.end() ? -1 : at->second;
}

const std::vector<MessageId>& MessageTree::versions(MessageId id) const {
    const MessageId parent = at(id).parent;
    return parent == 0 ? root_.children : nodes_.at(parent).children;
}

int MessageTree::version(MessageId id) const {
    const auto& all = versions(id);
    return int(std::find(all.begin(), all.end(), id) - all.begin());
}

int MessageTree::show(MessageId id) {
    const MessageId parent = at(id).parent;
    if (shown_of(parent) == id) return -1;
    const int first = parent == 0 ? 0 : row(parent) + 1;
    set_shown(parent, id);
    rebuild_path();
    return first;
}

}  // namespace recto::ui
