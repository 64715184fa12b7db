<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="zh_TW">
<context>
    <name>recto::ui</name>
    <message>
        <source>%1 ms</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 s</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>no graphics card in use: running on the CPU with %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You are a patient guide at a museum of science and technology. Visitors of every age ask you about what they see, and you answer in a friendly and simple way. Begin with one sentence that answers the question. Then explain the idea with an example from daily life, such as cooking, traffic, sport or the weather. Use short sentences and common words. When a word is technical, say in a few words what it means. If a visitor asks about something dangerous, explain it without instructions for doing it. If you do not know the answer, say so, and suggest where the visitor could look. Do not make up names, years or numbers. Keep every answer to about two paragraphs, and end with a question that makes the visitor curious about the next room of the museum.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Why is the sky blue?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How does a refrigerator make things cold?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Why do ships made of steel float?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How does a camera remember a picture?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Under 1 billion parameters</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Quick on any machine. Short, simple tasks.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>1 to 2 billion</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Good on a laptop. Everyday questions, short texts.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>3 billion</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Noticeably better answers, about half as fast.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>7 to 8 billion</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Solid answers. Slow on a CPU, quick on a graphics card.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>14 billion and more</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>For much memory and patience.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>recto::ui::BetterAnswersDialog</name>
    <message>
        <source>needs about %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>✓ fits</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>too large</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Better answers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The starter model is small and made for trying things out. Larger models answer much better. These families load: Llama, SmolLM2, Qwen2 and Qwen2.5, as a GGUF file or as a Hugging Face folder.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Memory free on this machine now: %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How much memory is free on this machine is not known.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How they get here</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>1. Search the model&apos;s name with “GGUF” on a site that hosts models, for instance Hugging Face, and download one file with your browser. Q4_K_M is a good size; Q8_0 is closer to the original and twice as large.
2. Drop the file, or a folder with config.json and safetensors, on Recto&apos;s window. Before it loads you see how much memory it needs.
3. Keep it wherever you like: models are used where they are and never copied. A good place is the folder %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open model file…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open model folder…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Close</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>recto::ui::BlockMapSection</name>
    <message>
        <source>no model loaded</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 / %2 used · waste %3 %</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>shared %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>cached %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>free %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A contiguous cache would have reserved %1 blocks for these chats: %2 times as many.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>KV blocks</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Map of KV blocks</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Legend of the block map</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Block %1, free</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Block %1, cached: kept for whoever starts with the same text</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>last used by %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Block %1, shared by %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Block %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1: its block %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 of %2 tokens</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>recto::ui::BlockMapWidget</name>
    <message>
        <source>%1 blocks, all free</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 more free</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>recto::ui::BlocksOverTimeSection</name>
    <message numerus="yes">
        <source>%n block(s) used now</source>
        <translation type="unfinished">
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>Blocks used</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>last %1 s</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Blocks used over time, by chat</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>recto::ui::ChatTabBar</name>
    <message>
        <source>%1, %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Close tab (Ctrl+W)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Close tab</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open chats</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>recto::ui::EventList</name>
    <message>
        <source>step %1  %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>nothing yet</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>recto::ui::EventsSection</name>
    <message>
        <source>Resume</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Pause</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Pool events</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Step</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>One step of the engine (. on the block map)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Stops all chats between two steps (Space on the block map)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Pool events, newest first</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>recto::ui::LivePanel</name>
    <message>
        <source>Live panel</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>recto::ui::LoadSection</name>
    <message>
        <source>map</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>tokenizer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>read</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>repack</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>upload</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>warm-up</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 ms</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 s</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Load time</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Load time by stage</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Load stages</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>recto::ui::MainWindow</name>
    <message>
        <source>Everything that waited is saved again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>“%1” goes on answering.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Stop</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>“%1” was deleted.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Undo</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Rename chat</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Title</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 — Recto</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Quit Recto?</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>%n chat(s) still answer. What is there is kept; the rest is not written.</source>
        <translation type="unfinished">
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>Stop and quit</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Go on</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>New chat (Ctrl+N)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>New chat</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>File</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Close tab</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Reopen closed tab</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Search chats</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Quit</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Chat</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Go to the input</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Answer again</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Continue the answer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Previous version</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Next version</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy the last answer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Rename…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Delete</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Stop all chats</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Start four chats with one shared system prompt</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Model</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open model file…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open model folder…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Recent models</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Reload</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Eject</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Cancel loading</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Better answers…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>View</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Sidebar</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Live panel</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Full screen</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Larger text</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Smaller text</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Normal text</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Appearance</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>As the system</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Light</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Dark</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Language</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Next tab</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Previous tab</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Next pane</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Previous pane</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Tab %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Help</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Keyboard shortcuts</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>About Recto</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Close other tabs</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Send</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Enter</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ctrl+Enter</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>New line</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Shift+Enter</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Stop the answer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Esc</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Rename, delete in the chat list</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>F2, Del</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Pause, step on the block map</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Space, .</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Recto %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Chats with language models on this computer, and shows how their memory is paged.

Apache License 2.0. Built with Qt %1.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>recto::ui::MemoryDialog</name>
    <message>
        <source>Load model</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This model cannot be loaded</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 · %2 · %3 · file %4</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Weights</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Workspace</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>KV cache, one full context of %1 tokens</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Needed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Free now</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Comes back from the model loaded now</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It does not fit. A smaller model or a build with fewer bits would.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A full context does not fit. It can be loaded with a context of %1 tokens.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It fits.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Close</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Load</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>recto::ui::MessageBar</name>
    <message>
        <source>Dismiss</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>recto::ui::ModelCard</name>
    <message numerus="yes">
        <source>CPU, %1, %n thread(s)</source>
        <translation type="unfinished">
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>%1 · %2
weights %3 · KV pool %4 blocks × %5
loaded in %6</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>loading …</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The model did not load</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No model loaded</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Drop a GGUF file or a model folder here, or open one.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 was ejected.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A small model, made for trying things out.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Better answers…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Reload</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Load again</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open model…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Eject</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Gives the model&apos;s memory back. Chats keep their text.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Loads the same file again</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Model</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Loading the model</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>loading: %1, %2 %</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>recto::ui::ModelOpener</name>
    <message>
        <source>Open model file</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Models (*.gguf *.safetensors);;All files (*)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open model folder (config.json and safetensors)</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>recto::ui::NumbersSection</name>
    <message>
        <source>decode tok/s, all chats</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Answer tokens of all chats, committed in the last second ÷ that time.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>prefill tok/s</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Prompt tokens computed in the last second ÷ that time; cached ones are not counted.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>running + waiting</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Answers being computed + answers waiting for blocks.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>recto::ui::Sidebar</name>
    <message>
        <source>Open</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Rename…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Stop</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Delete</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>New chat</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>New chat (Ctrl+N)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Search chats  Ctrl+K</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Search chats</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Chats</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>recto::ui::SpeedSection</name>
    <message>
        <source>prefill</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>decode</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>decode %1, prefill %2 tokens per second</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Tokens per second</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>decode ―  prefill ┄</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Tokens per second over time</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>recto::ui::StatusLine</name>
    <message>
        <source>○ loading, %1 %</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>○ loading</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>✕ the model did not load</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>○ no model loaded</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>KV %1 %</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 tok/s</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>step %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>%n chat(s)</source>
        <translation type="unfinished">
            <numerusform></numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%1, %n answering</source>
        <translation type="unfinished">
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>paused · %1</source>
        <translation type="unfinished"></translation>
    </message>
</context>
</TS>
