#include <QTest>

#include "store/store_fixture.h"
#include "support/registry.h"
#include "ui/store/message_tree.h"

using namespace recto::test;
using namespace recto::ui;

namespace {

MessageRecord node(MessageId id, MessageId parent, MessageId shown_child = 0) {
    MessageRecord m =
        make_message(id, 1, parent, parent % 2 ? Role::assistant : Role::user, QString::number(id));
    m.shown_child = shown_child;
    return m;
}

using Path = std::vector<MessageId>;

}  // namespace

class TestMessageTree : public QObject {
    Q_OBJECT
  private Q_SLOTS:
    void showsTheStoredPath() {
        MessageTree tree;
        //  1 ─ 2 ─ 3
        //    └ 4 ─ 5
        tree.reset({node(1, 0, 4), node(2, 1), node(3, 2), node(4, 1), node(5, 4)}, 1);
        QCOMPARE(tree.path(), (Path{1, 4, 5}));
        QCOMPARE(tree.versions(4), (Path{2, 4}));
        QCOMPARE(tree.version(4), 1);
        QCOMPARE(tree.row(5), 2);
        QCOMPARE(tree.row(3), -1);
        QCOMPARE(tree.leaf(), MessageId(5));
    }

    void switchingKeepsEachTail() {
        MessageTree tree;
        tree.reset({node(1, 0, 4), node(2, 1, 3), node(3, 2), node(4, 1), node(5, 4)}, 1);
        QCOMPARE(tree.show(2), 1);
        QCOMPARE(tree.path(), (Path{1, 2, 3}));
        QCOMPARE(tree.show(2), -1);  // shown already
        QCOMPARE(tree.show(4), 1);
        QCOMPARE(tree.path(), (Path{1, 4, 5}));
    }

    void newestIsShownWhereNothingIsStored() {
        MessageTree tree;
        tree.reset({node(1, 0), node(2, 0), node(3, 2), node(4, 2)}, 0);
        QCOMPARE(tree.path(), (Path{2, 4}));
        tree.reset({node(1, 0), node(2, 0)}, 77);  // a lost choice
        QCOMPARE(tree.path(), (Path{2}));
    }

    void addingShows() {
        MessageTree tree;
        tree.reset({}, 0);
        tree.add(node(1, 0));
        tree.add(node(2, 1));
        tree.add(node(3, 1));
        QCOMPARE(tree.path(), (Path{1, 3}));
        tree.add(node(4, 0));
        QCOMPARE(tree.path(), (Path{4}));
        QCOMPARE(tree.shown_root(), MessageId(4));
    }

    void orphansAndRingsHangUnderTheRootWithANote() {
        MessageTree tree;
        tree.reset({node(1, 0), node(2, 99), node(3, 4), node(4, 3)}, 1);
        QCOMPARE(tree.versions(1), (Path{1, 2, 3}));
        QVERIFY(!tree.at(2).note.isEmpty());
        QVERIFY(!tree.at(3).note.isEmpty());
        QVERIFY(tree.at(4).note.isEmpty());
        QCOMPARE(tree.show(3), 0);
        QCOMPARE(tree.path(), (Path{3, 4}));
    }
};

RECTO_TEST_CLASS(TestMessageTree);
#include "test_message_tree.moc"
