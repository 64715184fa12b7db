// Small templates against what Python's jinja2 printed for them under Hugging Face's settings
// (tests/data/template/make_expected.py). Where jinja2 refuses, so must this interpreter.
#include <QTest>
#include <fstream>

#include "engine/text/chat_template.h"
#include "kernels/error.h"
#include "support/registry.h"

namespace {

using recto::ChatTemplate;
using recto::Error;
using recto::ErrorKind;
using recto::Json;
using recto::TemplateOptions;

Json load(const std::string& name) {
    std::ifstream file(std::string(RECTO_TEST_DATA) + "/template/" + name);
    return Json::parse(file);
}

}  // namespace

class TestExpressions : public QObject {
    Q_OBJECT
  private slots:
    void initTestCase() { qputenv("TZ", "UTC"); }
    void matches_jinja2_data();
    void matches_jinja2();
    void names_what_it_lacks_data();
    void names_what_it_lacks();
};

void TestExpressions::matches_jinja2_data() {
    QTest::addColumn<QString>("source");
    QTest::addColumn<bool>("refused");
    QTest::addColumn<QString>("expected");
    int number = 0;
    for (const Json& row : load("expressions.json")) {
        const bool refused = row["expected"].is_null();
        const auto source = QString::fromStdString(row["source"]);
        QTest::addRow("%d %s", ++number, qPrintable(source.left(60).simplified()))
            << source << refused << (refused ? QString() : QString::fromStdString(row["expected"]));
    }
}

void TestExpressions::matches_jinja2() {
    QFETCH(QString, source);
    QFETCH(bool, refused);
    QFETCH(QString, expected);
    static const Json data = load("expressions_data.json");
    TemplateOptions options;
    options.now_unix_s = 1750000000;
    options.variables = data["variables"];
    try {
        const std::string text = ChatTemplate(source.toStdString()).render_text(data["messages"], options);
        QVERIFY2(!refused, qPrintable("jinja2 refuses it, but it became: " + QString::fromStdString(text)));
        QCOMPARE(QString::fromStdString(text), expected);
    } catch (const Error& error) {
        QVERIFY2(refused, error.what());
        QCOMPARE(error.kind(), ErrorKind::input);
    }
}

// Things that Python can do and this interpreter cannot: an error that says so, with the line.
void TestExpressions::names_what_it_lacks_data() {
    QTest::addColumn<QString>("source");
    QTest::addColumn<QString>("said");
    const auto row = [](const char* source, const char* said) {
        QTest::newRow(qPrintable(QString(source).simplified())) << QString(source) << QString(said);
    };
    row("\n{{ 'a'.encode('utf8') }}", "line 2: the method 'encode' of str is not supported");
    row("{{ 5.5.is_integer() }}", "the method 'is_integer' of float is not supported");
    row("{{ lipsum() }}", "the function 'lipsum' is not supported");
    row("{{ self }}", "'self' is not supported");
    row("{{ '<'|e }}", "the filter 'e' is not supported");
    row("{{ 'a'.upper }}", "printing a builtin_function_or_method is not supported");
    row("{{ (1).bit_length }}", "printing a builtin_function_or_method is not supported");
    row("\n\n{{ 9223372036854775808 }}", "line 3: the number 9223372036854775808 does not fit 64 bits");
    row("{{ 9223372036854775807 + 1 }}", "an integer does not fit 64 bits");
    row("{{ 2 ** 64 }}", "an integer does not fit 64 bits");
    row("{% autoescape true %}{% endautoescape %}", "the statement 'autoescape' is not supported");
    row("{{ '{:>5}'.format(1) }}", "format specifications in str.format are not supported");
    row("{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}", "too much work");
    // Comparisons count: of 2^60 pairs, of a list's every item again and again, of long texts; and so do the
    // values that a text's characters become, before they are made.
    row("{% set n = namespace(x=[1], y=[1]) %}{% for i in range(60) %}{% set n.x=[n.x,n.x] %}{% set "
        "n.y=[n.y,n.y] %}{% endfor %}{{ n.x == n.y }}",
        "too much work");
    row("{% set l=range(100000)|list %}{% for i in range(100000) %}{% if -1 in l %}{% endif %}{% endfor %}",
        "too much work");
    row("{% set s='a'*30000000 %}{% for i in range(100) %}{{ ('a'*15000000 ~ 'b') in s }}{% endfor %}",
        "too much work");
    row("{% for c in 'a'*3000000 %}{% endfor %}", "too much work");
    row("{{ 'aaaaaaaa' * 100000000 }}", "grows beyond 64 MiB");
    row("{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
        "grows beyond 64 MiB");
    row("{% macro f(n) %}{{ f(n) }}{% endmacro %}{{ f(3) }}", "nested too deep");
    row("{% set ns = namespace(x=1) %}{% for i in range(1000) %}{% set ns.x = [ns.x] %}{% endfor %}",
        "nested deeper than");
}

void TestExpressions::names_what_it_lacks() {
    QFETCH(QString, source);
    QFETCH(QString, said);
    try {
        const std::string text = ChatTemplate(source.toStdString()).render_text(Json::array(), {});
        QFAIL(("it became: " + text.substr(0, 200)).c_str());
    } catch (const Error& error) {
        QCOMPARE(error.kind(), ErrorKind::input);
        QVERIFY2(QString(error.what()).contains(said), error.what());
    }
}

RECTO_TEST_CLASS(TestExpressions);
#include "test_expressions.moc"
