// Writing: files that appear whole or not at all, and safetensors as the reference library lays them out.
#include <sys/resource.h>
#include <QTest>
#include <csignal>

#include "engine/load/folder_tensors.h"
#include "engine/load/mapped_file.h"
#include "engine/load/safetensors.h"
#include "engine/save/safetensors_writer.h"
#include "load/files.h"
#include "support/registry.h"

using namespace recto;
using namespace recto::test;
namespace fs = std::filesystem;

namespace {

std::string error_of(ErrorKind kind, const std::function<void()>& act) {
    try {
        act();
    } catch (const Error& error) {
        if (error.kind() == kind) return error.what();
        QTest::qFail((std::string("an error of another kind: ") + error.what()).c_str(), __FILE__, __LINE__);
        return {};
    }
    QTest::qFail("nothing was refused", __FILE__, __LINE__);
    return {};
}

ByteSource bytes_source(std::string bytes) {
    return [bytes](const ByteSink& sink) { sink(std::as_bytes(std::span(bytes))); };
}

std::vector<SaveTensor> copies_of(const Safetensors& file) {
    std::vector<SaveTensor> tensors;
    for (const auto& t : file.tensors()) {
        // Only the element's size matters to the writer: bytes travel as 16-bit pairs where they are even.
        const SaveType type = t.dtype == "F32" ? SaveType::f32 : SaveType::i16;
        std::vector<std::int64_t> shape = t.shape;
        if (t.dtype == "U8") shape = {std::int64_t(t.data.size() / 2)};
        tensors.push_back({t.name, type, shape, [data = t.data](const ByteSink& sink) { sink(data); }});
    }
    return tensors;
}

// The end of writing that a full disk gives too: no file may grow beyond a limit.
class FileLimit {
  public:
    explicit FileLimit(rlim_t bytes) {
        getrlimit(RLIMIT_FSIZE, &before_);
        old_ = std::signal(SIGXFSZ, SIG_IGN);
        const rlimit limit{bytes, before_.rlim_max};
        setrlimit(RLIMIT_FSIZE, &limit);
    }
    ~FileLimit() {
        setrlimit(RLIMIT_FSIZE, &before_);
        std::signal(SIGXFSZ, old_);
    }

  private:
    rlimit before_{};
    void (*old_)(int) = nullptr;
};

}  // namespace

class TestSaveFiles : public QObject {
    Q_OBJECT

  private slots:
    void a_folder_appears_whole() {
        const Scratch scratch;
        const fs::path folder = scratch.path() / "made" / "here";
        OutputFolder out(folder);
        out.write("b.txt", "second");
        out.write("a.txt", "first");
        QVERIFY(!fs::exists(folder / "a.txt"));
        out.commit();
        QCOMPARE(read_text_file(folder / "a.txt"), std::string("first"));
        QCOMPARE(std::distance(fs::directory_iterator(folder), {}), 2);
    }

    void what_is_not_finished_leaves_nothing() {
        const Scratch scratch;
        const fs::path folder = scratch.path() / "half";
        {
            OutputFolder out(folder);
            out.write("a.txt", "first");
        }
        QVERIFY(!fs::exists(folder));
        fs::create_directory(folder);
        { OutputFolder(folder).write("a.txt", "first"); }
        QVERIFY(fs::is_empty(folder));  // it was there before, and stays
    }

    void nothing_is_overwritten() {
        const Scratch scratch;
        scratch.write("full/a.txt", "mine");
        scratch.write("file.gguf", "mine");
        for (const char* name : {"full", "full/", "file.gguf"}) {
            const auto path = scratch.path() / name;
            const std::string said = error_of(ErrorKind::argument, [&] { OutputFolder out(path); });
            QVERIFY2(said.find("expected a new or empty folder") != std::string::npos, said.c_str());
        }
        const std::string said = error_of(
            ErrorKind::argument, [&] { (void)OutputFolder::for_file(scratch.path() / "file.gguf"); });
        QVERIFY2(said.find("expected a new file") != std::string::npos, said.c_str());
        QCOMPARE(read_text_file(scratch.path() / "full/a.txt"), std::string("mine"));
    }

    void what_a_killed_run_left_is_cleared_away() {
        const Scratch scratch;
        scratch.write("model/a.safetensors.partial", "half");
        { OutputFolder out(scratch.path() / "model"); }
        QVERIFY(!fs::exists(scratch.path() / "model/a.safetensors.partial"));
        scratch.write("mixed/a.safetensors.partial", "half");
        scratch.write("mixed/b.txt", "mine");
        error_of(ErrorKind::argument, [&] { OutputFolder out(scratch.path() / "mixed"); });
        QVERIFY(fs::exists(scratch.path() / "mixed/a.safetensors.partial"));
    }

    void a_folder_inside_a_file_cannot_be_made() {
        const Scratch scratch;
        scratch.write("file", "x");
        const fs::path folder = scratch.path() / "file" / "model";
        const std::string said = error_of(ErrorKind::runtime, [&] { OutputFolder out(folder); });
        QVERIFY2(said.find(folder.string()) == 0 && said.find("Not a directory") != std::string::npos,
                 said.c_str());
    }

    void a_full_disk_is_one_sentence_and_leaves_nothing() {
        const Scratch scratch;
        const fs::path folder = scratch.path() / "model";
        std::string said;
        {
            const FileLimit limit(1000);
            said = error_of(ErrorKind::runtime, [&] {
                OutputFolder out(folder);
                write_safetensors(out, {{"a", SaveType::f32, {512}, bytes_source(std::string(2048, 'x'))}});
                out.commit();
            });
        }
        QVERIFY2(said.find("model.safetensors: ") != std::string::npos &&
                     said.find("writing failed") != std::string::npos && said.find('\n') == std::string::npos,
                 said.c_str());
        QVERIFY(!fs::exists(folder));
    }

    void more_than_the_disk_holds_is_refused_before_writing() {
        const Scratch scratch;
        const fs::path folder = scratch.path() / "model";
        const std::string said = error_of(ErrorKind::runtime, [&] {
            OutputFolder out(folder);
            write_safetensors(out, {{"a", SaveType::f32, {1LL << 50}, [](const ByteSink&) {
                                         QFAIL("a tensor was asked for although it cannot fit");
                                     }}});
        });
        QVERIFY2(said.find("4294967296 MiB") != std::string::npos, said.c_str());
        QVERIFY(!fs::exists(folder));
    }

    // The source was written by the safetensors package (tests/data/load/make_expected.py).
    void safetensors_hold_what_was_given() {
        const std::string path = RECTO_TEST_DATA "/load/tiny_llama_expected.safetensors";
        const MappedFile original(path);
        const Safetensors expected(original.bytes(), path);
        const Scratch scratch;
        OutputFolder out(scratch.path() / "model");
        double progress = 0;
        write_safetensors(out, copies_of(expected), [&](double share) {
            QVERIFY(share >= progress);
            progress = share;
        });
        out.commit();
        QCOMPARE(progress, 1.0);
        const MappedFile map(out.path() / "model.safetensors");
        const Safetensors found(map.bytes(), "written");
        QCOMPARE(found.tensors().size(), expected.tensors().size());
        for (const auto& tensor : expected.tensors()) {
            const SafeTensor* copy = found.find(tensor.name);
            QVERIFY(copy != nullptr);
            QCOMPARE(copy->dtype, tensor.dtype);
            QCOMPARE(copy->shape, tensor.shape);
            QVERIFY(std::ranges::equal(copy->data, tensor.data));
        }
        const std::string_view text(reinterpret_cast<const char*>(map.bytes().data()), map.bytes().size());
        QVERIFY(text.substr(8).starts_with(R"({"__metadata__":{"format":"pt"},)"));
    }

    void tensors_lie_at_multiples_of_their_elements() {
        const Scratch scratch;
        OutputFolder out(scratch.path() / "model");
        write_safetensors(out, {{"odd", SaveType::i16, {3}, bytes_source("abcdef")},
                                {"long", SaveType::i64, {1}, bytes_source("12345678")},
                                {"none", SaveType::f16, {0, 7}, [](const ByteSink&) {}},
                                {"wide", SaveType::i32, {1}, bytes_source("abcd")},
                                {"scalar", SaveType::f32, {}, bytes_source("wxyz")}});
        out.commit();
        const MappedFile map(out.path() / "model.safetensors");
        const Safetensors found(map.bytes(), "written");
        const auto offset = [&](const char* name) {
            return found.find(name)->data.data() - map.bytes().data();
        };
        QCOMPARE(offset("long") % 64, 0);
        QCOMPARE(offset("wide") % 4, 0);
        QCOMPARE(offset("scalar") % 4, 0);
        QCOMPARE(offset("odd") % 2, 0);
        QCOMPARE(found.find("none")->shape, (std::vector<std::int64_t>{0, 7}));
        QCOMPARE(found.find("scalar")->shape.size(), std::size_t(0));
    }

    void large_models_are_cut_into_shards() {
        const Scratch scratch;
        OutputFolder out(scratch.path() / "model");
        std::vector<SaveTensor> tensors;
        for (const char c : std::string("abcde"))
            tensors.push_back({std::string(1, c), SaveType::f32, {25}, bytes_source(std::string(100, c))});
        tensors.push_back({"large", SaveType::f32, {100}, bytes_source(std::string(400, 'L'))});
        write_safetensors(out, std::move(tensors), {}, 250);
        out.commit();
        // Two and two, one, and the one that is larger than a shard.
        for (int i = 1; i <= 4; ++i)
            QVERIFY(fs::exists(out.path() / ("model-0000" + std::to_string(i) + "-of-00004.safetensors")));
        QVERIFY(!fs::exists(out.path() / "model.safetensors"));
        const std::string index = read_text_file(out.path() / "model.safetensors.index.json");
        QVERIFY2(index.find("\"total_size\": 900") != std::string::npos, index.c_str());
        const FolderTensors folder(out.path());
        QCOMPARE(folder.tensors().size(), std::size_t(6));
        QCOMPARE(char(folder.find("e")->data[99]), 'e');
        QVERIFY(folder.label_of("d").ends_with("model-00002-of-00004.safetensors"));
    }
};

RECTO_TEST_CLASS(TestSaveFiles);
#include "test_save_files.moc"
