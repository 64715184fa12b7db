// Whole prompts of model families, over message sets with tools, empty and null content, Unicode and
// control-token spellings: the texts of Python's jinja2 (tests/data/template/make_expected.py), to the byte.
#include <QTest>
#include <fstream>
#include <map>
#include <sstream>

#include "engine/text/chat_template.h"
#include "kernels/error.h"
#include "support/registry.h"

namespace {

using recto::ChatTemplate;
using recto::Error;
using recto::ErrorKind;
using recto::Json;
using recto::TemplateOptions;

std::string read(const std::string& name) {
    std::ifstream file(std::string(RECTO_TEST_DATA) + "/template/" + name);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

TemplateOptions options_for(const Json& family, const Json& set, bool prompt) {
    TemplateOptions options;
    options.now_unix_s = 1750000000;
    options.add_generation_prompt = prompt;
    for (const Json& source : {family, set})
        if (source.contains("variables"))
            for (const auto& [name, value] : source["variables"].items())
                options.variables[name] = value;
    options.bos_token = options.variables["bos_token"];
    options.eos_token = options.variables["eos_token"];
    return options;
}

}  // namespace

class TestFamilies : public QObject {
    Q_OBJECT
  private slots:
    void initTestCase();
    void renders_as_jinja2_data();
    void renders_as_jinja2();
    void user_text_stays_user_text();

  private:
    Json cases_;
    std::map<std::string, Json> families_;
};

void TestFamilies::initTestCase() {
    qputenv("TZ", "UTC");
    cases_ = Json::parse(read("cases.json"));
    for (const Json& family : cases_["families"])
        families_[family["name"]] = family;
    QVERIFY(families_.size() >= 25);
}

void TestFamilies::renders_as_jinja2_data() {
    QTest::addColumn<QString>("family");
    for (const auto& family : families_)
        QTest::newRow(family.first.c_str()) << QString::fromStdString(family.first);
}

void TestFamilies::renders_as_jinja2() {
    QFETCH(QString, family);
    static const Json expected = Json::parse(read("expected.json"));
    const ChatTemplate chat_template(read(family.toStdString() + ".jinja"));
    int compared = 0;
    for (const Json& row : expected) {
        if (row["family"] != family.toStdString()) continue;
        const Json& set = cases_["sets"][row["set"].get<std::string>()];
        const std::string where = row["set"].get<std::string>() + (row["prompt"] ? ", with prompt: " : ": ");
        try {
            const auto options = options_for(families_[family.toStdString()], set, row["prompt"]);
            const std::string text = chat_template.render_text(set["messages"], options);
            if (row["expected"].is_null())
                QFAIL((where + "jinja2 refuses it, but it became: " + text).c_str());
            QCOMPARE(QString::fromStdString(where + text),
                     QString::fromStdString(where + row["expected"].get<std::string>()));
        } catch (const Error& error) {
            QVERIFY2(row["expected"].is_null(), (where + error.what()).c_str());
            QCOMPARE(error.kind(), ErrorKind::input);
        }
        ++compared;
    }
    QVERIFY(compared >= 20);
}

// Every message is put between private characters that no template knows. Wherever they come out, it must be
// in a piece marked as the person's, whatever the template did to the text before.
void TestFamilies::user_text_stays_user_text() {
    const std::string marker = "\xEE\x80\x81<|im_end|>\xEE\x80\x82";
    int rendered = 0;
    for (const auto& [name, family] : families_) {
        const ChatTemplate chat_template(read(name + ".jinja"));
        for (const auto& [set_name, set] : cases_["sets"].items()) {
            Json messages = set["messages"];
            for (Json& message : messages)
                if (message.contains("content") && message["content"].is_string())
                    message["content"] = marker + message["content"].get<std::string>() + marker;
            const auto options = options_for(family, set, true);
            std::vector<recto::TextPiece> pieces;
            try {
                pieces = chat_template.render(messages, options);
            } catch (const Error&) {
                continue;  // refused prompts are held against jinja2 above
            }
            ++rendered;
            std::string joined;
            for (std::size_t i = 0; i < pieces.size(); ++i) {
                const recto::TextPiece& piece = pieces[i];
                joined += piece.text;
                const bool leaks =
                    !piece.from_user && (piece.text.find("\xEE\x80\x81") != std::string::npos ||
                                         piece.text.find("\xEE\x80\x82") != std::string::npos);
                QVERIFY2(!leaks, (name + ", " + set_name + ": " + piece.text).c_str());
                QVERIFY(!piece.text.empty());
                if (i > 0) QVERIFY(pieces[i - 1].from_user != piece.from_user);
            }
            QCOMPARE(joined, chat_template.render_text(messages, options));
        }
    }
    QVERIFY(rendered > 300);
}

RECTO_TEST_CLASS(TestFamilies);
#include "test_families.moc"
