<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="en_US">
<context>
    <name>recto::ui::Benchmark</name>
    <message numerus="yes">
        <source>%n chat(s) still answer: wait until they are done, or stop them. A benchmark must have the machine to itself.</source>
        <translation>
            <numerusform>%n chat still answers: wait until it is done, or stop it. A benchmark must have the machine to itself.</numerusform>
            <numerusform>%n chats still answer: wait until they are done, or stop them. A benchmark must have the machine to itself.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>recto::ui::BenchTableModel</name>
    <message numerus="yes">
        <source>%1 to %2, %n run(s)</source>
        <translation>
            <numerusform>%1 to %2, %n run</numerusform>
            <numerusform>%1 to %2, %n runs</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n run(s) left out: too few steps with all sequences decoding</source>
        <translation>
            <numerusform>%n run left out: too few steps with all sequences decoding</numerusform>
            <numerusform>%n runs left out: too few steps with all sequences decoding</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n sequence(s) · %1 in + %2 out</source>
        <translation>
            <numerusform>%n sequence · %1 in + %2 out</numerusform>
            <numerusform>%n sequences · %1 in + %2 out</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>recto::ui::BenchView</name>
    <message numerus="yes">
        <source>about %n minute(s) left</source>
        <translation>
            <numerusform>about %n minute left</numerusform>
            <numerusform>about %n minutes left</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>recto::ui::BlocksOverTimeSection</name>
    <message numerus="yes">
        <source>%n block(s) used now</source>
        <translation>
            <numerusform>%n block used now</numerusform>
            <numerusform>%n blocks used now</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>recto::ui::Chat</name>
    <message numerus="yes">
        <source>waiting: %n block(s) short, place %1 in line</source>
        <translation>
            <numerusform>waiting: %n block short, place %1 in line</numerusform>
            <numerusform>waiting: %n blocks short, place %1 in line</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>recto::ui::ChatListDelegate</name>
    <message numerus="yes">
        <source>waiting for %n block(s)</source>
        <translation>
            <numerusform>waiting for %n block</numerusform>
            <numerusform>waiting for %n blocks</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>recto::ui::ChatView</name>
    <message numerus="yes">
        <source>%n token(s)</source>
        <translation>
            <numerusform>%n token</numerusform>
            <numerusform>%n tokens</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>recto::ui::ContextMeter</name>
    <message numerus="yes">
        <source>%n block(s)</source>
        <translation>
            <numerusform>%n block</numerusform>
            <numerusform>%n blocks</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>recto::ui::MainWindow</name>
    <message numerus="yes">
        <source>%n chat(s) still answer. What is there is kept; the rest is not written.</source>
        <translation>
            <numerusform>%n chat still answers. What is there is kept; the rest is not written.</numerusform>
            <numerusform>%n chats still answer. What is there is kept; the rest is not written.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>recto::ui::ModelCard</name>
    <message numerus="yes">
        <source>CPU, %1, %n thread(s)</source>
        <translation>
            <numerusform>CPU, %1, %n thread</numerusform>
            <numerusform>CPU, %1, %n threads</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>recto::ui::PoolEventModel</name>
    <message numerus="yes">
        <source>share block %1 → %2 (%n owner(s))</source>
        <translation>
            <numerusform>share block %1 → %2 (%n owner)</numerusform>
            <numerusform>share block %1 → %2 (%n owners)</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>preempt %1, %n block(s) freed</source>
        <translation>
            <numerusform>preempt %1, %n block freed</numerusform>
            <numerusform>preempt %1, %n blocks freed</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>recto::ui::StatusLine</name>
    <message numerus="yes">
        <source>%n chat(s)</source>
        <translation>
            <numerusform>%n chat</numerusform>
            <numerusform>%n chats</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%1, %n answering</source>
        <translation>
            <numerusform>%1, %n answering</numerusform>
            <numerusform>%1, %n answering</numerusform>
        </translation>
    </message>
</context>
</TS>
