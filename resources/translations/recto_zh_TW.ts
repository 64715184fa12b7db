<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="zh_TW">
<context>
    <name>recto::ui</name>
    <message>
        <source>%1 ms</source>
        <translation>%1 毫秒</translation>
    </message>
    <message>
        <source>%1 s</source>
        <translation>%1 秒</translation>
    </message>
    <message>
        <source>%1, FP8 activations in prefill</source>
        <translation>%1，預填時使用 FP8 激活值</translation>
    </message>
    <message>
        <source>%1, INT8 activations in prefill</source>
        <translation>%1，預填時使用 INT8 激活值</translation>
    </message>
    <message>
        <source>%1, INT8 activations</source>
        <translation>%1，使用 INT8 激活值</translation>
    </message>
    <message>
        <source>no graphics card in use: running on the CPU with %1</source>
        <translation>未使用顯示卡：以 CPU 執行（%1）</translation>
    </message>
    <message>
        <source>You are a patient guide at a museum of science and technology. Visitors of every age ask you about what they see, and you answer in a friendly and simple way. Begin with one sentence that answers the question. Then explain the idea with an example from daily life, such as cooking, traffic, sport or the weather. Use short sentences and common words. When a word is technical, say in a few words what it means. If a visitor asks about something dangerous, explain it without instructions for doing it. If you do not know the answer, say so, and suggest where the visitor could look. Do not make up names, years or numbers. Keep every answer to about two paragraphs, and end with a question that makes the visitor curious about the next room of the museum.</source>
        <translation>你是一座科學與技術博物館裡有耐心的導覽員。各個年齡的訪客會問你他們看到的東西，你用親切而簡單的方式回答。先用一句話回答問題，再用日常生活的例子說明，例如煮飯、交通、運動或天氣。使用短句和常見的詞。遇到專業詞彙時，用幾個字說明它的意思。如果訪客問到危險的事，只解釋原理，不教做法。如果你不知道答案，就直說，並建議訪客可以去哪裡查。不要編造人名、年份或數字。每個回答大約兩段，最後提出一個問題，讓訪客對下一個展廳感到好奇。</translation>
    </message>
    <message>
        <source>Why is the sky blue?</source>
        <translation>天空為什麼是藍色的？</translation>
    </message>
    <message>
        <source>How does a refrigerator make things cold?</source>
        <translation>冰箱怎麼讓東西變冷？</translation>
    </message>
    <message>
        <source>Why do ships made of steel float?</source>
        <translation>鋼鐵做的船為什麼會浮？</translation>
    </message>
    <message>
        <source>How does a camera remember a picture?</source>
        <translation>相機怎麼記住一張照片？</translation>
    </message>
    <message>
        <source>Under 1 billion parameters</source>
        <translation>十億參數以下</translation>
    </message>
    <message>
        <source>Quick on any machine. Short, simple tasks.</source>
        <translation>任何電腦上都快。適合簡短的工作。</translation>
    </message>
    <message>
        <source>1 to 2 billion</source>
        <translation>十億到二十億</translation>
    </message>
    <message>
        <source>Good on a laptop. Everyday questions, short texts.</source>
        <translation>適合筆記型電腦。日常問題、短文。</translation>
    </message>
    <message>
        <source>3 billion</source>
        <translation>三十億</translation>
    </message>
    <message>
        <source>Noticeably better answers, about half as fast.</source>
        <translation>回答明顯較好，速度約為一半。</translation>
    </message>
    <message>
        <source>7 to 8 billion</source>
        <translation>七十億到八十億</translation>
    </message>
    <message>
        <source>Solid answers. Slow on a CPU, quick on a graphics card.</source>
        <translation>回答可靠。在 CPU 上慢，在顯示卡上快。</translation>
    </message>
    <message>
        <source>14 billion and more</source>
        <translation>一百四十億以上</translation>
    </message>
    <message>
        <source>For much memory and patience.</source>
        <translation>需要大量記憶體和耐心。</translation>
    </message>
</context>
<context>
    <name>recto::ui::Benchmark</name>
    <message>
        <source>Recto is closing.</source>
        <translation>Recto 正在關閉。</translation>
    </message>
    <message>
        <source>A benchmark is running.</source>
        <translation>效能測試正在執行。</translation>
    </message>
    <message numerus="yes">
        <source>%n chat(s) still answer: wait until they are done, or stop them. A benchmark must have the machine to itself.</source>
        <translation>
            <numerusform>還有 %n 個對話在回答：請等它們完成，或先停止。效能測試必須獨占這台電腦。</numerusform>
        </translation>
    </message>
    <message>
        <source>A model is being loaded: wait until it is ready.</source>
        <translation>模型正在載入：請等到可用為止。</translation>
    </message>
    <message>
        <source>A benchmark is running, and chats wait so that it measures only itself. It can be stopped in its tab.</source>
        <translation>效能測試正在執行，對話暫時等待，以免影響測量。可在其分頁中停止。</translation>
    </message>
</context>
<context>
    <name>recto::ui::BenchReports</name>
    <message>
        <source>%1: the report could not be written: %2</source>
        <translation>%1：無法寫入報告：%2</translation>
    </message>
    <message>
        <source>%1 cannot be read: %2</source>
        <translation>無法讀取 %1：%2</translation>
    </message>
    <message>
        <source>%1: expected a benchmark report as JSON, found other text</source>
        <translation>%1：應為 JSON 格式的效能測試報告，卻是其他文字</translation>
    </message>
    <message>
        <source>%1: expected a folder that can be made, found none; the report was not kept</source>
        <translation>%1：無法建立這個資料夾，報告沒有保存</translation>
    </message>
</context>
<context>
    <name>recto::ui::BenchTable</name>
    <message>
        <source>Copy rows</source>
        <translation>複製這些列</translation>
    </message>
    <message>
        <source>Benchmark results</source>
        <translation>效能測試結果</translation>
    </message>
</context>
<context>
    <name>recto::ui::BenchTableModel</name>
    <message>
        <source>B compared with A. Coloured only where the runs' ranges do not overlap and the difference is larger than what A's own runs differ by.</source>
        <translation>B 與 A 的比較。只有各次結果範圍不重疊，且差異大於 A 自身各次差異時，才會上色。</translation>
    </message>
    <message>
        <source>Figure</source>
        <translation>項目</translation>
    </message>
    <message>
        <source>A · %1</source>
        <translation>A · %1</translation>
    </message>
    <message>
        <source>B · %1</source>
        <translation>B · %1</translation>
    </message>
    <message>
        <source>B : A</source>
        <translation>B : A</translation>
    </message>
    <message>
        <source>First token (TTFT)</source>
        <translation>首個詞元（TTFT）</translation>
    </message>
    <message>
        <source>Prefill, tok/s</source>
        <translation>預填，詞元/秒</translation>
    </message>
    <message>
        <source>Time per token (TPOT)</source>
        <translation>每個詞元的時間（TPOT）</translation>
    </message>
    <message>
        <source>Total, tok/s</source>
        <translation>總計，詞元/秒</translation>
    </message>
    <message>
        <source>Total while all decode, tok/s</source>
        <translation>全部解碼時總計，詞元/秒</translation>
    </message>
    <message>
        <source>Prefill, characters/s</source>
        <translation>預填，字元/秒</translation>
    </message>
    <message>
        <source>Decode, characters/s</source>
        <translation>解碼，字元/秒</translation>
    </message>
    <message>
        <source>Energy, J a token</source>
        <translation>能量，每個詞元焦耳</translation>
    </message>
    <message>
        <source>%1 ms</source>
        <translation>%1 毫秒</translation>
    </message>
    <message>
        <source>%1 s</source>
        <translation>%1 秒</translation>
    </message>
    <message numerus="yes">
        <source>%1 to %2, %n run(s)</source>
        <translation>
            <numerusform>%1 至 %2，共 %n 次</numerusform>
        </translation>
    </message>
    <message>
        <source>Void: in under half of the steps all sequences decoded. More output tokens help.</source>
        <translation>無效：不到一半的步驟是全部序列同時解碼。增加輸出詞元會有幫助。</translation>
    </message>
    <message>
        <source>p95 %1, longest %2, over %3 gaps</source>
        <translation>p95 %1，最長 %2，共 %3 個間隔</translation>
    </message>
    <message numerus="yes">
        <source>%n run(s) left out: too few steps with all sequences decoding</source>
        <translation>
            <numerusform>略去 %n 次：全部序列同時解碼的步驟太少</numerusform>
        </translation>
    </message>
    <message>
        <source>The device was held back by heat or power in every try.</source>
        <translation>每次嘗試時，裝置都因溫度或供電而降速。</translation>
    </message>
    <message>
        <source>%1× faster</source>
        <translation>快 %1×</translation>
    </message>
    <message>
        <source>%1 % faster</source>
        <translation>快 %1 %</translation>
    </message>
    <message>
        <source>%1× slower</source>
        <translation>慢 %1×</translation>
    </message>
    <message>
        <source>%1 % slower</source>
        <translation>慢 %1 %</translation>
    </message>
    <message>
        <source>%1× smaller</source>
        <translation>小 %1×</translation>
    </message>
    <message>
        <source>%1 % smaller</source>
        <translation>小 %1 %</translation>
    </message>
    <message>
        <source>%1× larger</source>
        <translation>大 %1×</translation>
    </message>
    <message>
        <source>%1 % larger</source>
        <translation>大 %1 %</translation>
    </message>
    <message>
        <source>%1× more</source>
        <translation>多 %1×</translation>
    </message>
    <message>
        <source>%1 % more</source>
        <translation>多 %1 %</translation>
    </message>
    <message>
        <source>%1× fewer</source>
        <translation>少 %1×</translation>
    </message>
    <message>
        <source>%1 % fewer</source>
        <translation>少 %1 %</translation>
    </message>
    <message>
        <source>the same</source>
        <translation>相同</translation>
    </message>
    <message>
        <source>likely %1</source>
        <translation>可能%1</translation>
    </message>
    <message>
        <source>within noise</source>
        <translation>在雜訊內</translation>
    </message>
    <message>
        <source>too few runs</source>
        <translation>次數太少</translation>
    </message>
    <message>
        <source>B ÷ A = %1; noise up to %2 %; p = %3 (exact rank test), %4 and %5 runs</source>
        <translation>B ÷ A = %1；雜訊最多 %2 %；p = %3（精確秩檢定），%4 次與 %5 次</translation>
    </message>
    <message>
        <source>Fewer than %1 runs a side cannot tell a difference from noise.</source>
        <translation>每邊少於 %1 次，無法分辨差異與雜訊。</translation>
    </message>
    <message>
        <source>Models</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Load time</source>
        <translation>載入時間</translation>
    </message>
    <message>
        <source>open → first step possible</source>
        <translation>開啟 → 可執行第一步</translation>
    </message>
    <message>
        <source>Weights in memory</source>
        <translation>記憶體中的權重</translation>
    </message>
    <message>
        <source>Tokens that fit</source>
        <translation>可容納的詞元</translation>
    </message>
    <message>
        <source>blocks × block size beside the weights</source>
        <translation>權重之外的區塊數 × 區塊大小</translation>
    </message>
    <message>
        <source>Peak memory</source>
        <translation>記憶體峰值</translation>
    </message>
    <message numerus="yes">
        <source>%n sequence(s) · %1 in + %2 out</source>
        <translation>
            <numerusform>%n 個序列 · 輸入 %1 + 輸出 %2</numerusform>
        </translation>
    </message>
    <message>
        <source> · at depth %1</source>
        <translation> · 深度 %1</translation>
    </message>
    <message>
        <source>Same greedy tokens as A</source>
        <translation>與 A 相同的貪婪詞元</translation>
    </message>
    <message>
        <source>prompts whose outputs are identical</source>
        <translation>輸出完全相同的提示數</translation>
    </message>
    <message>
        <source>%1 of %2</source>
        <translation>%2 個中的 %1 個</translation>
    </message>
    <message>
        <source>none differs</source>
        <translation>全部相同</translation>
    </message>
    <message>
        <source>first differs at %1</source>
        <translation>從第 %1 個起不同</translation>
    </message>
    <message>
        <source>Median over the prompts, of %1 tokens. Outputs that run free drift apart after one difference, so how much differs later says little.</source>
        <translation>各提示的中位數，共 %1 個詞元。自由生成的輸出一旦不同便越差越遠，因此之後差多少沒有意義。</translation>
    </message>
    <message>
        <source>Decode, tok/s</source>
        <translation>解碼，詞元/秒</translation>
    </message>
    <message>
        <source>A: %1</source>
        <translation>A：%1</translation>
    </message>
    <message>
        <source>B: %1</source>
        <translation>B：%1</translation>
    </message>
    <message>
        <source>(n − 1) ÷ (t_n − t_1), one sequence</source>
        <translation>(n − 1) ÷ (t_n − t_1)，單一序列</translation>
    </message>
    <message>
        <source>t_{i+1} − t_i, median</source>
        <translation>t_{i+1} − t_i，中位數</translation>
    </message>
    <message>
        <source>tokens between the last t_1 and the first t_n ÷ that span</source>
        <translation>最後一個 t_1 與第一個 t_n 之間的詞元 ÷ 這段時間</translation>
    </message>
    <message>
        <source>characters of the prompt ÷ (t_1 − t_start)</source>
        <translation>提示的字元 ÷ (t_1 − t_start)</translation>
    </message>
    <message>
        <source>characters behind the first token ÷ (t_n − t_1)</source>
        <translation>首個詞元之後的字元 ÷ (t_n − t_1)</translation>
    </message>
    <message>
        <source>the board's energy ÷ Σn</source>
        <translation>顯示卡的能量 ÷ Σn</translation>
    </message>
    <message>
        <source>Gap between tokens (ITL)</source>
        <translation>詞元間隔（ITL）</translation>
    </message>
    <message>
        <source>Gap between tokens, p99</source>
        <translation>詞元間隔，p99</translation>
    </message>
    <message>
        <source>99 of 100 gaps are shorter, all runs together</source>
        <translation>100 個間隔中有 99 個更短，所有各次合計</translation>
    </message>
</context>
<context>
    <name>recto::ui::BenchView</name>
    <message>
        <source>Benchmark</source>
        <translation>效能測試</translation>
    </message>
    <message>
        <source>The benchmark is finished.</source>
        <translation>效能測試已完成。</translation>
    </message>
    <message>
        <source>Stopped. What was measured is shown, and not kept unless you save it.</source>
        <translation>已停止。已測得的結果仍顯示，但除非你儲存，否則不會保存。</translation>
    </message>
    <message>
        <source>Stopped before anything was measured.</source>
        <translation>在測得任何結果前已停止。</translation>
    </message>
    <message>
        <source>The benchmark was stopped.</source>
        <translation>效能測試已停止。</translation>
    </message>
    <message>
        <source>Saved as %1.</source>
        <translation>已儲存為 %1。</translation>
    </message>
    <message>
        <source>The benchmark has started.</source>
        <translation>效能測試已開始。</translation>
    </message>
    <message>
        <source>Choose a model for A.</source>
        <translation>請選擇模型 A。</translation>
    </message>
    <message>
        <source>Something in the workload is not a number yet.</source>
        <translation>工作量中有欄位還不是數字。</translation>
    </message>
    <message>
        <source>Chats wait while a benchmark runs.</source>
        <translation>效能測試期間，對話會等待。</translation>
    </message>
    <message>
        <source>looking at the models and the memory …</source>
        <translation>正在檢查模型與記憶體…</translation>
    </message>
    <message>
        <source>stopping …</source>
        <translation>正在停止…</translation>
    </message>
    <message numerus="yes">
        <source>about %n minute(s) left</source>
        <translation>
            <numerusform>約剩 %n 分鐘</numerusform>
        </translation>
    </message>
    <message>
        <source>about %1 s left</source>
        <translation>約剩 %1 秒</translation>
    </message>
    <message>
        <source>idle</source>
        <translation>閒置</translation>
    </message>
    <message>
        <source>running, %1 %</source>
        <translation>執行中，%1 %</translation>
    </message>
    <message>
        <source>greedy, end of turn ignored</source>
        <translation>貪婪取樣，忽略回答結束</translation>
    </message>
    <message>
        <source>prefix cache off</source>
        <translation>前綴快取關閉</translation>
    </message>
    <message>
        <source>this run</source>
        <translation>這一次</translation>
    </message>
    <message>
        <source>the last run, not kept</source>
        <translation>上一次，未保存</translation>
    </message>
    <message>
        <source>none yet</source>
        <translation>尚無</translation>
    </message>
    <message>
        <source>The benchmark needs about %1 of memory, and %2 are free.</source>
        <translation>效能測試約需 %1 記憶體，目前可用 %2。</translation>
    </message>
    <message>
        <source>%1 Ejecting the model of the chats gives %2 back; the chats keep their text.</source>
        <translation>%1卸載對話使用的模型可釋放 %2；對話文字會保留。</translation>
    </message>
    <message>
        <source>Eject it and run</source>
        <translation>卸載模型並開始</translation>
    </message>
    <message>
        <source>%1 Choose fewer sequences, a smaller depth or a smaller model.</source>
        <translation>%1請減少序列數、降低深度，或選較小的模型。</translation>
    </message>
    <message>
        <source>Save the report</source>
        <translation>儲存報告</translation>
    </message>
    <message>
        <source>JSON (*.json)</source>
        <translation>JSON (*.json)</translation>
    </message>
    <message>
        <source>CSV (*.csv)</source>
        <translation>CSV (*.csv)</translation>
    </message>
    <message>
        <source>Copied as Markdown, with what a repetition needs.</source>
        <translation>已複製為 Markdown，包含重現所需的資訊。</translation>
    </message>
    <message>
        <source>Run</source>
        <translation>開始</translation>
    </message>
    <message>
        <source>Run the benchmark</source>
        <translation>開始效能測試</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>停止</translation>
    </message>
    <message>
        <source>Stop the benchmark</source>
        <translation>停止效能測試</translation>
    </message>
    <message>
        <source>Progress of the benchmark</source>
        <translation>效能測試進度</translation>
    </message>
    <message>
        <source>Report</source>
        <translation>報告</translation>
    </message>
    <message>
        <source>Finished benchmarks</source>
        <translation>已完成的效能測試</translation>
    </message>
    <message>
        <source>Results stand here while the benchmark runs, each with its formula. Finished ones are kept.</source>
        <translation>測試進行時，結果會顯示在這裡，並附上公式。完成的報告會保存。</translation>
    </message>
    <message>
        <source>Copy as Markdown</source>
        <translation>複製為 Markdown</translation>
    </message>
    <message>
        <source>Save as</source>
        <translation>另存為</translation>
    </message>
    <message>
        <source>Save the report as a file</source>
        <translation>將報告存成檔案</translation>
    </message>
    <message>
        <source>loading and warming up …</source>
        <translation>正在載入與暖機…</translation>
    </message>
    <message>
        <source>timed run %1 of %2</source>
        <translation>第 %1 次計時，共 %2 次</translation>
    </message>
    <message>
        <source>%1 · %2</source>
        <translation>%1 · %2</translation>
    </message>
</context>
<context>
    <name>recto::ui::BetterAnswersDialog</name>
    <message>
        <source>needs about %1</source>
        <translation>約需 %1</translation>
    </message>
    <message>
        <source>✓ fits</source>
        <translation>✓ 放得下</translation>
    </message>
    <message>
        <source>too large</source>
        <translation>太大</translation>
    </message>
    <message>
        <source>Better answers</source>
        <translation>更好的回答</translation>
    </message>
    <message>
        <source>The starter model is small and made for trying things out. Larger models answer much better. These families load: Llama, Mistral, Mixtral, SmolLM, Qwen, Gemma, Phi, OLMo and Granite, as a GGUF file or as a Hugging Face folder, quantized ones included.</source>
        <translation>入門模型很小，只供試用；較大的模型回答好得多。可載入的模型家族：Llama、Mistral、Mixtral、SmolLM、Qwen、Gemma、Phi、OLMo 與 Granite，格式為 GGUF 檔或 Hugging Face 資料夾，量化模型亦可。</translation>
    </message>
    <message>
        <source>Memory free on this machine now: %1.</source>
        <translation>這台電腦目前可用的記憶體：%1。</translation>
    </message>
    <message>
        <source>How much memory is free on this machine is not known.</source>
        <translation>無法得知這台電腦的可用記憶體。</translation>
    </message>
    <message>
        <source>How they get here</source>
        <translation>如何取得</translation>
    </message>
    <message>
        <source>1. Search the model&apos;s name with “GGUF” on a site that hosts models, for instance Hugging Face, and download one file with your browser. Q4_K_M is a good size; Q8_0 is closer to the original and twice as large.
2. Drop the file, or a folder with config.json and safetensors, on Recto&apos;s window. Before it loads you see how much memory it needs.
3. Keep it wherever you like: models are used where they are and never copied. A good place is the folder %1.</source>
        <translation>1. 在存放模型的網站（例如 Hugging Face）以模型名稱加上「GGUF」搜尋，用瀏覽器下載一個檔案。Q4_K_M 大小適中；Q8_0 更接近原版，但大一倍。
2. 把檔案，或含有 config.json 與 safetensors 的資料夾，拖放到 Recto 視窗上。載入前會顯示需要多少記憶體。
3. 放在哪裡都可以：模型在原處使用，不會複製。建議放在資料夾 %1。</translation>
    </message>
    <message>
        <source>Open model file…</source>
        <translation>開啟模型檔…</translation>
    </message>
    <message>
        <source>Open model folder…</source>
        <translation>開啟模型資料夾…</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>關閉</translation>
    </message>
</context>
<context>
    <name>recto::ui::BlockLayout</name>
    <message>
        <source>Copy</source>
        <translation>複製</translation>
    </message>
</context>
<context>
    <name>recto::ui::BlockMapModel</name>
    <message>
        <source>No pool.</source>
        <translation>沒有記憶池。</translation>
    </message>
    <message>
        <source>%1 of %2 used</source>
        <translation>已用 %1 / %2</translation>
    </message>
    <message>
        <source>%1 shared</source>
        <translation>共用 %1</translation>
    </message>
    <message>
        <source>%1 cached</source>
        <translation>快取 %1</translation>
    </message>
    <message>
        <source>%1 more free</source>
        <translation>另有 %1 個空閒</translation>
    </message>
    <message>
        <source>block %1: free</source>
        <translation>區塊 %1：空閒</translation>
    </message>
    <message>
        <source>nobody</source>
        <translation>無人</translation>
    </message>
    <message>
        <source>block %1: cached, last of %2</source>
        <translation>區塊 %1：快取，最後屬於 %2</translation>
    </message>
    <message>
        <source>block %1: shared by %2, last taken by %3</source>
        <translation>區塊 %1：%2 個序列共用，最後由 %3 取用</translation>
    </message>
    <message>
        <source>block %1: %2, %3 of %4 slots</source>
        <translation>區塊 %1：%2，%3 / %4 格</translation>
    </message>
    <message>
        <source>%1 %2</source>
        <translation>%1 %2</translation>
    </message>
</context>
<context>
    <name>recto::ui::BlockMapSection</name>
    <message>
        <source>no model loaded</source>
        <translation>未載入模型</translation>
    </message>
    <message>
        <source>%1 / %2 used · waste %3 %</source>
        <translation>已用 %1 / %2 · 浪費 %3 %</translation>
    </message>
    <message>
        <source>shared %1</source>
        <translation>共用 %1</translation>
    </message>
    <message>
        <source>cached %1</source>
        <translation>快取 %1</translation>
    </message>
    <message>
        <source>free %1</source>
        <translation>空閒 %1</translation>
    </message>
    <message>
        <source>A contiguous cache would have reserved %1 blocks for these chats: %2 times as many.</source>
        <translation>連續快取會為這些對話保留 %1 個區塊：%2 倍。</translation>
    </message>
    <message>
        <source>KV blocks</source>
        <translation>KV 區塊</translation>
    </message>
    <message>
        <source>Map of KV blocks</source>
        <translation>KV 區塊圖</translation>
    </message>
    <message>
        <source>Legend of the block map</source>
        <translation>區塊圖的圖例</translation>
    </message>
    <message>
        <source>Block %1, free</source>
        <translation>區塊 %1，空閒</translation>
    </message>
    <message>
        <source>Block %1, cached: kept for whoever starts with the same text</source>
        <translation>區塊 %1，快取：留給開頭文字相同的對話</translation>
    </message>
    <message>
        <source>last used by %1</source>
        <translation>最後由 %1 使用</translation>
    </message>
    <message>
        <source>Block %1, shared by %2</source>
        <translation>區塊 %1，由 %2 個序列共用</translation>
    </message>
    <message>
        <source>Block %1</source>
        <translation>區塊 %1</translation>
    </message>
    <message>
        <source>%1: its block %2</source>
        <translation>%1：第 %2 個邏輯區塊</translation>
    </message>
    <message>
        <source>%1 of %2 tokens</source>
        <translation>%1 / %2 個詞元</translation>
    </message>
</context>
<context>
    <name>recto::ui::BlockMapWidget</name>
    <message>
        <source>%1 blocks, all free</source>
        <translation>%1 個區塊，全部空閒</translation>
    </message>
    <message>
        <source>%1 more free</source>
        <translation>另有 %1 個空閒</translation>
    </message>
</context>
<context>
    <name>recto::ui::BlocksOverTimeSection</name>
    <message numerus="yes">
        <source>%n block(s) used now</source>
        <translation>
            <numerusform>目前使用 %n 個區塊</numerusform>
        </translation>
    </message>
    <message>
        <source>Blocks used</source>
        <translation>已用區塊</translation>
    </message>
    <message>
        <source>last %1 s</source>
        <translation>最近 %1 秒</translation>
    </message>
    <message>
        <source>Blocks used over time, by chat</source>
        <translation>各對話隨時間使用的區塊</translation>
    </message>
</context>
<context>
    <name>recto::ui::Chat</name>
    <message>
        <source>New chat</source>
        <translation>新對話</translation>
    </message>
    <message>
        <source>idle</source>
        <translation>閒置</translation>
    </message>
    <message>
        <source>queued</source>
        <translation>排隊中</translation>
    </message>
    <message numerus="yes">
        <source>waiting: %n block(s) short, place %1 in line</source>
        <translation>
            <numerusform>等待中：缺 %n 個區塊，排第 %1 位</numerusform>
        </translation>
    </message>
    <message>
        <source>reading the prompt, %1 %</source>
        <translation>讀取提示，%1 %</translation>
    </message>
    <message>
        <source>generating %1 tok/s</source>
        <translation>生成中 %1 詞元/秒</translation>
    </message>
    <message>
        <source>generating</source>
        <translation>生成中</translation>
    </message>
    <message>
        <source>stopping</source>
        <translation>停止中</translation>
    </message>
    <message>
        <source>failed</source>
        <translation>失敗</translation>
    </message>
    <message>
        <source>This chat is answering.</source>
        <translation>這個對話正在回答。</translation>
    </message>
    <message>
        <source>The chats are not open, so nothing could be kept.</source>
        <translation>對話資料未開啟，無法保存任何內容。</translation>
    </message>
    <message>
        <source>The chats are open for reading only.</source>
        <translation>對話資料以唯讀開啟。</translation>
    </message>
    <message>
        <source>No model is loaded.</source>
        <translation>沒有載入模型。</translation>
    </message>
    <message>
        <source>The model is being loaded.</source>
        <translation>模型載入中。</translation>
    </message>
    <message>
        <source>Recto is closing.</source>
        <translation>Recto 正在關閉。</translation>
    </message>
    <message>
        <source>Edited by you.</source>
        <translation>由你編輯。</translation>
    </message>
    <message>
        <source>The message could not be stored, so it was not sent: %1</source>
        <translation>訊息無法儲存，因此沒有送出：%1</translation>
    </message>
    <message>
        <source>This message could not be read.</source>
        <translation>這則訊息無法讀取。</translation>
    </message>
    <message>
        <source>This chat is still being read.</source>
        <translation>這個對話還在讀取中。</translation>
    </message>
</context>
<context>
    <name>recto::ui::ChatListDelegate</name>
    <message numerus="yes">
        <source>waiting for %n block(s)</source>
        <translation>
            <numerusform>等待 %n 個區塊</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>recto::ui::ChatListModel</name>
    <message>
        <source>%1 tok/s</source>
        <translation>%1 詞元/秒</translation>
    </message>
    <message>
        <source>generating</source>
        <translation>生成中</translation>
    </message>
    <message>
        <source>waiting for blocks</source>
        <translation>等待區塊</translation>
    </message>
    <message>
        <source>Today</source>
        <translation>今天</translation>
    </message>
    <message>
        <source>Earlier</source>
        <translation>更早</translation>
    </message>
    <message>
        <source>%1, %2</source>
        <translation>%1，%2</translation>
    </message>
</context>
<context>
    <name>recto::ui::ChatTabBar</name>
    <message>
        <source>%1, %2</source>
        <translation>%1，%2</translation>
    </message>
    <message>
        <source>Close tab (Ctrl+W)</source>
        <translation>關閉分頁（Ctrl+W）</translation>
    </message>
    <message>
        <source>Close tab</source>
        <translation>關閉分頁</translation>
    </message>
    <message>
        <source>Open chats</source>
        <translation>開啟的對話</translation>
    </message>
</context>
<context>
    <name>recto::ui::ChatView</name>
    <message>
        <source>reading the prompt</source>
        <translation>讀取提示</translation>
    </message>
    <message>
        <source>%1 %</source>
        <translation>%1 %</translation>
    </message>
    <message>
        <source>%1 tok/s</source>
        <translation>%1 詞元/秒</translation>
    </message>
    <message>
        <source>decoding</source>
        <translation>解碼中</translation>
    </message>
    <message numerus="yes">
        <source>%n token(s)</source>
        <translation>
            <numerusform>%n 個詞元</numerusform>
        </translation>
    </message>
    <message>
        <source>Answer started</source>
        <translation>開始回答</translation>
    </message>
    <message>
        <source>Failed: %1</source>
        <translation>失敗：%1</translation>
    </message>
    <message>
        <source>Stopped</source>
        <translation>已停止</translation>
    </message>
    <message>
        <source>Answer finished</source>
        <translation>回答完成</translation>
    </message>
    <message>
        <source>Chat</source>
        <translation>對話</translation>
    </message>
    <message>
        <source>What shall we talk about?</source>
        <translation>想聊些什麼？</translation>
    </message>
    <message>
        <source>Everything runs on this machine. To see paging and sharing happen, start four chats at once and watch the block map on the right.</source>
        <translation>一切都在這台電腦上執行。想看分頁與共用如何發生，可以同時開始四個對話，並觀察右側的區塊圖。</translation>
    </message>
    <message>
        <source>Start four chats with one shared system prompt</source>
        <translation>以同一個系統提示開始四個對話</translation>
    </message>
    <message>
        <source>They answer at the same time, and the blocks of the system prompt exist once</source>
        <translation>四個對話同時回答，系統提示的區塊只存在一份</translation>
    </message>
</context>
<context>
    <name>recto::ui::ContextMeter</name>
    <message>
        <source>no model loaded</source>
        <translation>未載入模型</translation>
    </message>
    <message>
        <source>context %1 / %2</source>
        <translation>上下文 %1 / %2</translation>
    </message>
    <message>
        <source>nearly full</source>
        <translation>快滿了</translation>
    </message>
    <message>
        <source>full soon</source>
        <translation>即將用滿</translation>
    </message>
    <message numerus="yes">
        <source>%n block(s)</source>
        <translation>
            <numerusform>%n 個區塊</numerusform>
        </translation>
    </message>
    <message>
        <source>Context</source>
        <translation>上下文</translation>
    </message>
    <message>
        <source>Tokens of this chat that the model sees, and how many it can see at most. Blocks are the pieces of the KV cache that hold them.</source>
        <translation>模型看得到的詞元數，以及最多能看到多少。區塊是存放它們的 KV 快取單位。</translation>
    </message>
</context>
<context>
    <name>recto::ui::EventList</name>
    <message>
        <source>step %1  %2</source>
        <translation>第 %1 步  %2</translation>
    </message>
    <message>
        <source>nothing yet</source>
        <translation>尚無事件</translation>
    </message>
</context>
<context>
    <name>recto::ui::EventsSection</name>
    <message>
        <source>Resume</source>
        <translation>繼續</translation>
    </message>
    <message>
        <source>Pause</source>
        <translation>暫停</translation>
    </message>
    <message>
        <source>Pool events</source>
        <translation>記憶池事件</translation>
    </message>
    <message>
        <source>Step</source>
        <translation>單步</translation>
    </message>
    <message>
        <source>One step of the engine (. on the block map)</source>
        <translation>引擎執行一步（在區塊圖上按 .）</translation>
    </message>
    <message>
        <source>Stops all chats between two steps (Space on the block map)</source>
        <translation>在兩步之間停下所有對話（在區塊圖上按空白鍵）</translation>
    </message>
    <message>
        <source>Pool events, newest first</source>
        <translation>記憶池事件，最新在前</translation>
    </message>
</context>
<context>
    <name>recto::ui::InputBox</name>
    <message>
        <source>Write a message first</source>
        <translation>請先輸入訊息</translation>
    </message>
    <message>
        <source>Stopping…</source>
        <translation>停止中…</translation>
    </message>
    <message>
        <source>Stop  Esc</source>
        <translation>停止  Esc</translation>
    </message>
    <message>
        <source>Send</source>
        <translation>送出</translation>
    </message>
    <message>
        <source>Stop the answer</source>
        <translation>停止回答</translation>
    </message>
    <message>
        <source>Send the message</source>
        <translation>送出訊息</translation>
    </message>
    <message>
        <source>Stops this answer; its text is kept (Esc)</source>
        <translation>停止這個回答；文字會保留（Esc）</translation>
    </message>
    <message>
        <source>%1 tokens · %2 left</source>
        <translation>%1 個詞元 · 剩 %2</translation>
    </message>
    <message>
        <source>%1 tokens · %2 too many</source>
        <translation>%1 個詞元 · 超過 %2</translation>
    </message>
    <message>
        <source>Pasted text, %1 tokens</source>
        <translation>貼上的文字，%1 個詞元</translation>
    </message>
    <message>
        <source>Pasted text, %1 characters</source>
        <translation>貼上的文字，%1 個字</translation>
    </message>
    <message>
        <source>%1: show it</source>
        <translation>%1：顯示</translation>
    </message>
    <message>
        <source>Keep inline</source>
        <translation>放入訊息</translation>
    </message>
    <message>
        <source>Put the pasted text into the message</source>
        <translation>把貼上的文字放進訊息</translation>
    </message>
    <message>
        <source>Remove the pasted text</source>
        <translation>移除貼上的文字</translation>
    </message>
    <message>
        <source>Message</source>
        <translation>訊息</translation>
    </message>
    <message>
        <source>Message, Enter to send, Shift+Enter for a new line</source>
        <translation>輸入訊息，Enter 送出，Shift+Enter 換行</translation>
    </message>
    <message>
        <source>Message, Ctrl+Enter to send, Enter for a new line</source>
        <translation>輸入訊息，Ctrl+Enter 送出，Enter 換行</translation>
    </message>
    <message>
        <source>Sampling of this chat</source>
        <translation>這個對話的取樣</translation>
    </message>
    <message>
        <source>Temperature, top-p and the like, for this chat</source>
        <translation>這個對話的溫度、top-p 等設定</translation>
    </message>
    <message>
        <source>System prompt •</source>
        <translation>系統提示 •</translation>
    </message>
    <message>
        <source>System prompt</source>
        <translation>系統提示</translation>
    </message>
    <message>
        <source>System prompt of this chat, set</source>
        <translation>這個對話的系統提示，已設定</translation>
    </message>
    <message>
        <source>System prompt of this chat</source>
        <translation>這個對話的系統提示</translation>
    </message>
    <message>
        <source>What the model is told before the first message</source>
        <translation>在第一則訊息之前告訴模型的內容</translation>
    </message>
</context>
<context>
    <name>recto::ui::LivePanel</name>
    <message>
        <source>Live panel</source>
        <translation>即時面板</translation>
    </message>
</context>
<context>
    <name>recto::ui::LoadSection</name>
    <message>
        <source>map</source>
        <translation>對映</translation>
    </message>
    <message>
        <source>tokenizer</source>
        <translation>分詞器</translation>
    </message>
    <message>
        <source>read</source>
        <translation>讀取</translation>
    </message>
    <message>
        <source>repack</source>
        <translation>重排</translation>
    </message>
    <message>
        <source>upload</source>
        <translation>上傳</translation>
    </message>
    <message>
        <source>warm-up</source>
        <translation>暖機</translation>
    </message>
    <message>
        <source>%1 ms</source>
        <translation>%1 毫秒</translation>
    </message>
    <message>
        <source>%1 s</source>
        <translation>%1 秒</translation>
    </message>
    <message>
        <source>Load time</source>
        <translation>載入時間</translation>
    </message>
    <message>
        <source>Load time by stage</source>
        <translation>各階段載入時間</translation>
    </message>
    <message>
        <source>Load stages</source>
        <translation>載入階段</translation>
    </message>
</context>
<context>
    <name>recto::ui::MainWindow</name>
    <message>
        <source>Everything that waited is saved again.</source>
        <translation>等待中的內容都已儲存。</translation>
    </message>
    <message>
        <source>“%1” goes on answering.</source>
        <translation>「%1」會繼續回答。</translation>
    </message>
    <message>
        <source>Show</source>
        <translation>顯示</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>停止</translation>
    </message>
    <message>
        <source>“%1” was deleted.</source>
        <translation>已刪除「%1」。</translation>
    </message>
    <message>
        <source>Undo</source>
        <translation>復原</translation>
    </message>
    <message>
        <source>Rename chat</source>
        <translation>重新命名對話</translation>
    </message>
    <message>
        <source>Title</source>
        <translation>標題</translation>
    </message>
    <message>
        <source>%1 — Recto</source>
        <translation>%1 — Recto</translation>
    </message>
    <message>
        <source>Quit Recto?</source>
        <translation>要結束 Recto 嗎？</translation>
    </message>
    <message numerus="yes">
        <source>%n chat(s) still answer. What is there is kept; the rest is not written.</source>
        <translation>
            <numerusform>還有 %n 個對話正在回答。已有的文字會保留，其餘不會寫出。</numerusform>
        </translation>
    </message>
    <message>
        <source>Stop and quit</source>
        <translation>停止並結束</translation>
    </message>
    <message>
        <source>Go on</source>
        <translation>繼續</translation>
    </message>
    <message>
        <source>New chat (Ctrl+N)</source>
        <translation>新對話（Ctrl+N）</translation>
    </message>
    <message>
        <source>New chat</source>
        <translation>新對話</translation>
    </message>
    <message>
        <source>File</source>
        <translation>檔案</translation>
    </message>
    <message>
        <source>Close tab</source>
        <translation>關閉分頁</translation>
    </message>
    <message>
        <source>Reopen closed tab</source>
        <translation>重新開啟關閉的分頁</translation>
    </message>
    <message>
        <source>Search chats</source>
        <translation>搜尋對話</translation>
    </message>
    <message>
        <source>Quit</source>
        <translation>結束</translation>
    </message>
    <message>
        <source>Chat</source>
        <translation>對話</translation>
    </message>
    <message>
        <source>Go to the input</source>
        <translation>移到輸入框</translation>
    </message>
    <message>
        <source>Answer again</source>
        <translation>重新回答</translation>
    </message>
    <message>
        <source>Continue the answer</source>
        <translation>繼續回答</translation>
    </message>
    <message>
        <source>Previous version</source>
        <translation>上一個版本</translation>
    </message>
    <message>
        <source>Next version</source>
        <translation>下一個版本</translation>
    </message>
    <message>
        <source>Copy the last answer</source>
        <translation>複製最後的回答</translation>
    </message>
    <message>
        <source>Rename…</source>
        <translation>重新命名…</translation>
    </message>
    <message>
        <source>Delete</source>
        <translation>刪除</translation>
    </message>
    <message>
        <source>Stop all chats</source>
        <translation>停止所有對話</translation>
    </message>
    <message>
        <source>Start four chats with one shared system prompt</source>
        <translation>以同一個系統提示開始四個對話</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Open model file…</source>
        <translation>開啟模型檔…</translation>
    </message>
    <message>
        <source>Open model folder…</source>
        <translation>開啟模型資料夾…</translation>
    </message>
    <message>
        <source>Recent models</source>
        <translation>最近的模型</translation>
    </message>
    <message>
        <source>Reload</source>
        <translation>重新載入</translation>
    </message>
    <message>
        <source>Eject</source>
        <translation>卸載</translation>
    </message>
    <message>
        <source>Cancel loading</source>
        <translation>取消載入</translation>
    </message>
    <message>
        <source>Better answers…</source>
        <translation>更好的回答…</translation>
    </message>
    <message>
        <source>View</source>
        <translation>檢視</translation>
    </message>
    <message>
        <source>Sidebar</source>
        <translation>側邊欄</translation>
    </message>
    <message>
        <source>Live panel</source>
        <translation>即時面板</translation>
    </message>
    <message>
        <source>Full screen</source>
        <translation>全螢幕</translation>
    </message>
    <message>
        <source>Larger text</source>
        <translation>放大文字</translation>
    </message>
    <message>
        <source>Smaller text</source>
        <translation>縮小文字</translation>
    </message>
    <message>
        <source>Normal text</source>
        <translation>標準文字</translation>
    </message>
    <message>
        <source>Appearance</source>
        <translation>外觀</translation>
    </message>
    <message>
        <source>As the system</source>
        <translation>跟隨系統</translation>
    </message>
    <message>
        <source>Light</source>
        <translation>淺色</translation>
    </message>
    <message>
        <source>Dark</source>
        <translation>深色</translation>
    </message>
    <message>
        <source>Language</source>
        <translation>語言</translation>
    </message>
    <message>
        <source>Next tab</source>
        <translation>下一個分頁</translation>
    </message>
    <message>
        <source>Previous tab</source>
        <translation>上一個分頁</translation>
    </message>
    <message>
        <source>Next pane</source>
        <translation>下一個窗格</translation>
    </message>
    <message>
        <source>Previous pane</source>
        <translation>上一個窗格</translation>
    </message>
    <message>
        <source>Tab %1</source>
        <translation>分頁 %1</translation>
    </message>
    <message>
        <source>Help</source>
        <translation>說明</translation>
    </message>
    <message>
        <source>Keyboard shortcuts</source>
        <translation>鍵盤快速鍵</translation>
    </message>
    <message>
        <source>About Recto</source>
        <translation>關於 Recto</translation>
    </message>
    <message>
        <source>Close other tabs</source>
        <translation>關閉其他分頁</translation>
    </message>
    <message>
        <source>Send</source>
        <translation>送出</translation>
    </message>
    <message>
        <source>Enter</source>
        <translation>Enter</translation>
    </message>
    <message>
        <source>Ctrl+Enter</source>
        <translation>Ctrl+Enter</translation>
    </message>
    <message>
        <source>New line</source>
        <translation>換行</translation>
    </message>
    <message>
        <source>Shift+Enter</source>
        <translation>Shift+Enter</translation>
    </message>
    <message>
        <source>Stop the answer</source>
        <translation>停止回答</translation>
    </message>
    <message>
        <source>Esc</source>
        <translation>Esc</translation>
    </message>
    <message>
        <source>Rename, delete in the chat list</source>
        <translation>在對話清單中重新命名、刪除</translation>
    </message>
    <message>
        <source>F2, Del</source>
        <translation>F2、Del</translation>
    </message>
    <message>
        <source>Pause, step on the block map</source>
        <translation>在區塊圖上暫停、單步</translation>
    </message>
    <message>
        <source>Space, .</source>
        <translation>空白鍵、.</translation>
    </message>
    <message>
        <source>Recto %1</source>
        <translation>Recto %1</translation>
    </message>
    <message>
        <source>Chats with language models on this computer, and shows how their memory is paged.

Apache License 2.0. Built with Qt %1.</source>
        <translation>在這台電腦上與語言模型對話，並顯示其記憶體如何分頁。

Apache License 2.0。以 Qt %1 建置。</translation>
    </message>
    <message>
        <source>Drop to load this model</source>
        <translation>放開以載入這個模型</translation>
    </message>
    <message>
        <source>Edit the last prompt</source>
        <translation>編輯最後的提示</translation>
    </message>
    <message>
        <source>System prompt</source>
        <translation>系統提示</translation>
    </message>
    <message>
        <source>Sampling</source>
        <translation>取樣</translation>
    </message>
    <message>
        <source>Benchmark</source>
        <translation>效能測試</translation>
    </message>
    <message>
        <source>The benchmark goes on.</source>
        <translation>效能測試會繼續。</translation>
    </message>
    <message>
        <source>A benchmark is running. It is stopped, and what it has measured so far is not kept.</source>
        <translation>效能測試正在執行。它會停止，目前測得的結果不會保存。</translation>
    </message>
</context>
<context>
    <name>recto::ui::MemoryDialog</name>
    <message>
        <source>Load model</source>
        <translation>載入模型</translation>
    </message>
    <message>
        <source>This model cannot be loaded</source>
        <translation>無法載入這個模型</translation>
    </message>
    <message>
        <source>%1 · %2 · %3 · file %4</source>
        <translation>%1 · %2 · %3 · 檔案 %4</translation>
    </message>
    <message>
        <source>Weights</source>
        <translation>權重</translation>
    </message>
    <message>
        <source>Workspace</source>
        <translation>工作空間</translation>
    </message>
    <message>
        <source>KV cache, one full context of %1 tokens</source>
        <translation>KV 快取，一個完整上下文（%1 個詞元）</translation>
    </message>
    <message>
        <source>Needed</source>
        <translation>需要</translation>
    </message>
    <message>
        <source>Free now</source>
        <translation>目前可用</translation>
    </message>
    <message>
        <source>Of these for the model</source>
        <translation>其中可供模型使用</translation>
    </message>
    <message>
        <source>Comes back from the model loaded now</source>
        <translation>目前的模型會歸還</translation>
    </message>
    <message>
        <source>It does not fit. A smaller model or a build with fewer bits would.</source>
        <translation>放不下。較小的模型或位元數較少的版本可以。</translation>
    </message>
    <message>
        <source>A full context does not fit. It can be loaded with a context of %1 tokens.</source>
        <translation>放不下完整的上下文，可以用 %1 個詞元的上下文載入。</translation>
    </message>
    <message>
        <source>It fits.</source>
        <translation>放得下。</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>關閉</translation>
    </message>
    <message>
        <source>Load</source>
        <translation>載入</translation>
    </message>
</context>
<context>
    <name>recto::ui::MessageBar</name>
    <message>
        <source>Dismiss</source>
        <translation>關閉</translation>
    </message>
</context>
<context>
    <name>recto::ui::MessageEditor</name>
    <message>
        <source>Edit your message</source>
        <translation>編輯你的訊息</translation>
    </message>
    <message>
        <source>Edit the answer</source>
        <translation>編輯回答</translation>
    </message>
    <message>
        <source>Save and answer</source>
        <translation>儲存並回答</translation>
    </message>
    <message>
        <source>Save</source>
        <translation>儲存</translation>
    </message>
    <message>
        <source>Makes a new version; the old one is kept (Ctrl+Enter)</source>
        <translation>建立新版本，舊版會保留（Ctrl+Enter）</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Leaves the message as it is (Esc)</source>
        <translation>訊息維持原樣（Esc）</translation>
    </message>
</context>
<context>
    <name>recto::ui::MessageItem</name>
    <message>
        <source>Edit</source>
        <translation>編輯</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>複製</translation>
    </message>
    <message>
        <source>Regenerate</source>
        <translation>重新生成</translation>
    </message>
    <message>
        <source>Continue</source>
        <translation>繼續</translation>
    </message>
    <message>
        <source>Context full: the answer ends here, its text is kept</source>
        <translation>上下文已滿：回答到此為止，文字會保留</translation>
    </message>
</context>
<context>
    <name>recto::ui::ModelCard</name>
    <message numerus="yes">
        <source>CPU, %1, %n thread(s)</source>
        <translation>
            <numerusform>CPU，%1，%n 個執行緒</numerusform>
        </translation>
    </message>
    <message>
        <source>%1 · %2
weights %3 · KV pool %4 blocks × %5
loaded in %6</source>
        <translation>%1 · %2
權重 %3 · KV 池 %4 個區塊 × %5
載入用時 %6</translation>
    </message>
    <message>
        <source>loading …</source>
        <translation>載入中…</translation>
    </message>
    <message>
        <source>The model did not load</source>
        <translation>模型沒有載入</translation>
    </message>
    <message>
        <source>No model loaded</source>
        <translation>未載入模型</translation>
    </message>
    <message>
        <source>Drop a GGUF file or a model folder here, or open one.</source>
        <translation>把 GGUF 檔或模型資料夾拖放到這裡，或開啟一個。</translation>
    </message>
    <message>
        <source>%1 was ejected.</source>
        <translation>%1 已卸載。</translation>
    </message>
    <message>
        <source>A small model, made for trying things out.</source>
        <translation>這是供試用的小模型。</translation>
    </message>
    <message>
        <source>Better answers…</source>
        <translation>更好的回答…</translation>
    </message>
    <message>
        <source>Reload</source>
        <translation>重新載入</translation>
    </message>
    <message>
        <source>Load again</source>
        <translation>再次載入</translation>
    </message>
    <message>
        <source>Open model…</source>
        <translation>開啟模型…</translation>
    </message>
    <message>
        <source>Eject</source>
        <translation>卸載</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Gives the model&apos;s memory back. Chats keep their text.</source>
        <translation>歸還模型的記憶體；對話文字會保留。</translation>
    </message>
    <message>
        <source>Loads the same file again</source>
        <translation>再次載入同一個檔案</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Loading the model</source>
        <translation>正在載入模型</translation>
    </message>
    <message>
        <source>loading: %1, %2 %</source>
        <translation>載入中：%1，%2 %</translation>
    </message>
</context>
<context>
    <name>recto::ui::ModelOpener</name>
    <message>
        <source>Open model file</source>
        <translation>開啟模型檔</translation>
    </message>
    <message>
        <source>Models (*.gguf *.safetensors);;All files (*)</source>
        <translation>模型 (*.gguf *.safetensors);;所有檔案 (*)</translation>
    </message>
    <message>
        <source>Open model folder (config.json and safetensors)</source>
        <translation>開啟模型資料夾（config.json 與 safetensors）</translation>
    </message>
</context>
<context>
    <name>recto::ui::NumbersSection</name>
    <message>
        <source>decode tok/s, all chats</source>
        <translation>解碼 詞元/秒，所有對話</translation>
    </message>
    <message>
        <source>Answer tokens of all chats, committed in the last second ÷ that time.</source>
        <translation>最近一秒內所有對話產生的回答詞元 ÷ 該時間。</translation>
    </message>
    <message>
        <source>prefill tok/s</source>
        <translation>預填 詞元/秒</translation>
    </message>
    <message>
        <source>Prompt tokens computed in the last second ÷ that time; cached ones are not counted.</source>
        <translation>最近一秒內計算的提示詞元 ÷ 該時間；不含快取的詞元。</translation>
    </message>
    <message>
        <source>running + waiting</source>
        <translation>執行 + 等待</translation>
    </message>
    <message>
        <source>Answers being computed + answers waiting for blocks.</source>
        <translation>計算中的回答 + 等待區塊的回答。</translation>
    </message>
</context>
<context>
    <name>recto::ui::PoolEventModel</name>
    <message>
        <source>alloc block %1 → %2</source>
        <translation>配置 區塊 %1 → %2</translation>
    </message>
    <message numerus="yes">
        <source>share block %1 → %2 (%n owner(s))</source>
        <translation>
            <numerusform>共用 區塊 %1 → %2（%n 個擁有者）</numerusform>
        </translation>
    </message>
    <message>
        <source>copy block %1 → %2 for %3</source>
        <translation>複製 區塊 %1 → %2，供 %3</translation>
    </message>
    <message>
        <source>free block %1 of %2</source>
        <translation>釋放 %2 的區塊 %1</translation>
    </message>
    <message>
        <source>evict block %1, cached for %2</source>
        <translation>逐出 區塊 %1，原為 %2 的快取</translation>
    </message>
    <message numerus="yes">
        <source>preempt %1, %n block(s) freed</source>
        <translation>
            <numerusform>搶占 %1，釋放 %n 個區塊</numerusform>
        </translation>
    </message>
    <message>
        <source>swap out block %1 of %2 to host memory</source>
        <translation>換出 %2 的區塊 %1 至主記憶體</translation>
    </message>
    <message>
        <source>swap in block %1 for %2 from host memory</source>
        <translation>從主記憶體換入 區塊 %1，供 %2</translation>
    </message>
    <message>
        <source>alloc</source>
        <translation>配置</translation>
    </message>
    <message>
        <source>share</source>
        <translation>共用</translation>
    </message>
    <message>
        <source>copy</source>
        <translation>複製</translation>
    </message>
    <message>
        <source>free</source>
        <translation>釋放</translation>
    </message>
    <message>
        <source>evict</source>
        <translation>逐出</translation>
    </message>
    <message>
        <source>preempt</source>
        <translation>搶占</translation>
    </message>
    <message>
        <source>swap out</source>
        <translation>換出</translation>
    </message>
    <message>
        <source>swap in</source>
        <translation>換入</translation>
    </message>
    <message>
        <source>Step</source>
        <translation>單步</translation>
    </message>
    <message>
        <source>Event</source>
        <translation>事件</translation>
    </message>
    <message>
        <source>Block</source>
        <translation>區塊</translation>
    </message>
    <message>
        <source>Chat</source>
        <translation>對話</translation>
    </message>
    <message>
        <source>What happened</source>
        <translation>發生的事</translation>
    </message>
</context>
<context>
    <name>recto::ui::PromptPopover</name>
    <message>
        <source>System prompt of this chat</source>
        <translation>這個對話的系統提示</translation>
    </message>
    <message>
        <source>What the model is told before the first message</source>
        <translation>在第一則訊息之前告訴模型的內容</translation>
    </message>
    <message>
        <source>Chats with the same system prompt share its blocks in the KV cache.</source>
        <translation>系統提示相同的對話，在 KV 快取中共用其區塊。</translation>
    </message>
    <message>
        <source>Done</source>
        <translation>完成</translation>
    </message>
</context>
<context>
    <name>recto::ui::SamplingPopover</name>
    <message>
        <source>greedy</source>
        <translation>貪婪</translation>
    </message>
    <message>
        <source>temp %1 · top-p %2</source>
        <translation>溫度 %1 · top-p %2</translation>
    </message>
    <message>
        <source>Sampling of this chat</source>
        <translation>這個對話的取樣</translation>
    </message>
    <message>
        <source>Temperature</source>
        <translation>溫度</translation>
    </message>
    <message>
        <source>0 always takes the likeliest token; more is more varied</source>
        <translation>0 永遠取最可能的詞元；越大越多變</translation>
    </message>
    <message>
        <source>Top-p</source>
        <translation>Top-p</translation>
    </message>
    <message>
        <source>Draws from the likeliest tokens that together reach this probability</source>
        <translation>從合計達到此機率的最可能詞元中抽取</translation>
    </message>
    <message>
        <source>Top-k</source>
        <translation>Top-k</translation>
    </message>
    <message>
        <source>Draws from this many of the likeliest tokens; 0 is off</source>
        <translation>從這麼多個最可能的詞元中抽取；0 為關閉</translation>
    </message>
    <message>
        <source>Min-p</source>
        <translation>Min-p</translation>
    </message>
    <message>
        <source>Drops tokens less likely than this share of the likeliest; 0 is off</source>
        <translation>捨去機率低於最可能者此比例的詞元；0 為關閉</translation>
    </message>
    <message>
        <source>Repetition penalty</source>
        <translation>重複懲罰</translation>
    </message>
    <message>
        <source>Above 1 makes tokens that occurred less likely</source>
        <translation>大於 1 會降低已出現詞元的機率</translation>
    </message>
    <message>
        <source>Longest answer, tokens</source>
        <translation>回答長度上限（詞元）</translation>
    </message>
    <message>
        <source>The answer ends after this many tokens</source>
        <translation>回答到這麼多詞元為止</translation>
    </message>
    <message>
        <source>rest of the context</source>
        <translation>上下文的剩餘部分</translation>
    </message>
    <message>
        <source>off</source>
        <translation>關閉</translation>
    </message>
    <message>
        <source>Seed</source>
        <translation>種子</translation>
    </message>
    <message>
        <source>The same seed draws the same answer again; empty: a new one each time</source>
        <translation>相同的種子得到相同的回答；留空則每次不同</translation>
    </message>
    <message>
        <source>random</source>
        <translation>隨機</translation>
    </message>
    <message>
        <source>Back to the defaults</source>
        <translation>恢復預設值</translation>
    </message>
</context>
<context>
    <name>recto::ui::Session</name>
    <message>
        <source>nobody</source>
        <translation>無人</translation>
    </message>
    <message>
        <source>a deleted chat</source>
        <translation>已刪除的對話</translation>
    </message>
</context>
<context>
    <name>recto::ui::Settings</name>
    <message>
        <source>%1: no valid JSON (%2); it was set aside as %3 and the defaults are used. </source>
        <translation>%1：不是有效的 JSON（%2）；已另存為 %3，並使用預設值。</translation>
    </message>
    <message>
        <source>%1: the settings could not be saved: %2</source>
        <translation>%1：設定無法儲存：%2</translation>
    </message>
</context>
<context>
    <name>recto::ui::Sidebar</name>
    <message>
        <source>Open</source>
        <translation>開啟</translation>
    </message>
    <message>
        <source>Rename…</source>
        <translation>重新命名…</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>停止</translation>
    </message>
    <message>
        <source>Delete</source>
        <translation>刪除</translation>
    </message>
    <message>
        <source>New chat</source>
        <translation>新對話</translation>
    </message>
    <message>
        <source>New chat (Ctrl+N)</source>
        <translation>新對話（Ctrl+N）</translation>
    </message>
    <message>
        <source>Search chats  Ctrl+K</source>
        <translation>搜尋對話  Ctrl+K</translation>
    </message>
    <message>
        <source>Search chats</source>
        <translation>搜尋對話</translation>
    </message>
    <message>
        <source>Chats</source>
        <translation>對話</translation>
    </message>
</context>
<context>
    <name>recto::ui::SidePicker</name>
    <message>
        <source>choose a model</source>
        <translation>選擇模型</translation>
    </message>
    <message>
        <source>none: measure A alone</source>
        <translation>無：只測 A</translation>
    </message>
    <message>
        <source>A GGUF file or a model folder.</source>
        <translation>GGUF 檔案或模型資料夾。</translation>
    </message>
    <message>
        <source>With a second model both are measured in turn, A B B A.</source>
        <translation>選擇第二個模型時，兩者輪流測量：A B B A。</translation>
    </message>
    <message>
        <source>Choose a model file</source>
        <translation>選擇模型檔案</translation>
    </message>
    <message>
        <source>Models (*.gguf *.safetensors);;All files (*)</source>
        <translation>模型 (*.gguf *.safetensors);;所有檔案 (*)</translation>
    </message>
    <message>
        <source>Choose a model folder (config.json and safetensors)</source>
        <translation>選擇模型資料夾（config.json 與 safetensors）</translation>
    </message>
    <message>
        <source>Model A</source>
        <translation>模型 A</translation>
    </message>
    <message>
        <source>Model B (may be left out)</source>
        <translation>模型 B（可不選）</translation>
    </message>
    <message>
        <source>Browse</source>
        <translation>瀏覽</translation>
    </message>
    <message>
        <source>Browse for model A</source>
        <translation>瀏覽模型 A</translation>
    </message>
    <message>
        <source>Browse for model B</source>
        <translation>瀏覽模型 B</translation>
    </message>
    <message>
        <source>File…</source>
        <translation>檔案…</translation>
    </message>
    <message>
        <source>Folder…</source>
        <translation>資料夾…</translation>
    </message>
</context>
<context>
    <name>recto::ui::SpeedSection</name>
    <message>
        <source>prefill</source>
        <translation>預填</translation>
    </message>
    <message>
        <source>decode</source>
        <translation>解碼</translation>
    </message>
    <message>
        <source>decode %1, prefill %2 tokens per second</source>
        <translation>解碼 %1、預填 %2 詞元/秒</translation>
    </message>
    <message>
        <source>Tokens per second</source>
        <translation>每秒詞元數</translation>
    </message>
    <message>
        <source>Tokens per second over time</source>
        <translation>每秒詞元數隨時間變化</translation>
    </message>
    <message>
        <source>decode ― left, prefill ┄ right</source>
        <translation>解碼 ― 左，預填 ┄ 右</translation>
    </message>
</context>
<context>
    <name>recto::ui::StatisticsText</name>
    <message>
        <source>%1 ms</source>
        <translation>%1 毫秒</translation>
    </message>
    <message>
        <source>%1 s</source>
        <translation>%1 秒</translation>
    </message>
    <message>
        <source>%1 tok/s</source>
        <translation>%1 詞元/秒</translation>
    </message>
    <message>
        <source>context full</source>
        <translation>上下文已滿</translation>
    </message>
    <message>
        <source>stopped: Recto ended unexpectedly</source>
        <translation>已停止：Recto 意外結束</translation>
    </message>
    <message>
        <source>stopped</source>
        <translation>已停止</translation>
    </message>
    <message>
        <source>failed</source>
        <translation>失敗</translation>
    </message>
    <message>
        <source>token limit reached</source>
        <translation>達到詞元上限</translation>
    </message>
    <message>
        <source>end of turn</source>
        <translation>回答結束</translation>
    </message>
    <message>
        <source>prompt %1 (%2 cached)</source>
        <translation>提示 %1（快取 %2）</translation>
    </message>
    <message>
        <source>queue %1</source>
        <translation>排隊 %1</translation>
    </message>
    <message>
        <source>first token %1</source>
        <translation>首個詞元 %1</translation>
    </message>
    <message>
        <source>prefill %1</source>
        <translation>預填 %1</translation>
    </message>
    <message>
        <source>%1 out</source>
        <translation>輸出 %1</translation>
    </message>
    <message>
        <source>decode %1</source>
        <translation>解碼 %1</translation>
    </message>
    <message>
        <source>paused %1</source>
        <translation>暫停 %1</translation>
    </message>
    <message>
        <source>p prompt tokens, c of them from the cache, n answer tokens; times are taken in the engine when a step&apos;s tokens are committed.
queue = t(start) − t(request)
first token = t(1) − t(request), queue included
prefill = (p − c) ÷ (t(1) − t(start))
decode = (n − 1) ÷ (t(n) − t(1)), pauses included</source>
        <translation>p 個提示詞元，其中 c 個來自快取，n 個回答詞元；時間在引擎確認一步的詞元時記錄。
排隊 = t(開始) − t(請求)
首個詞元 = t(1) − t(請求)，含排隊
預填 = (p − c) ÷ (t(1) − t(開始))
解碼 = (n − 1) ÷ (t(n) − t(1))，含暫停</translation>
    </message>
</context>
<context>
    <name>recto::ui::StatusLine</name>
    <message>
        <source>○ loading, %1 %</source>
        <translation>○ 載入中，%1 %</translation>
    </message>
    <message>
        <source>○ loading</source>
        <translation>○ 載入中</translation>
    </message>
    <message>
        <source>✕ the model did not load</source>
        <translation>✕ 模型沒有載入</translation>
    </message>
    <message>
        <source>○ no model loaded</source>
        <translation>○ 未載入模型</translation>
    </message>
    <message>
        <source>KV %1 %</source>
        <translation>KV %1 %</translation>
    </message>
    <message>
        <source>%1 tok/s</source>
        <translation>%1 詞元/秒</translation>
    </message>
    <message>
        <source>step %1</source>
        <translation>每步 %1</translation>
    </message>
    <message numerus="yes">
        <source>%n chat(s)</source>
        <translation>
            <numerusform>%n 個對話</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%1, %n answering</source>
        <translation>
            <numerusform>%1，%n 個回答中</numerusform>
        </translation>
    </message>
    <message>
        <source>paused · %1</source>
        <translation>已暫停 · %1</translation>
    </message>
</context>
<context>
    <name>recto::ui::StoreText</name>
    <message>
        <source>Unknown role &quot;%1&quot;. </source>
        <translation>未知的角色「%1」。</translation>
    </message>
    <message>
        <source>Unknown state &quot;%1&quot;. </source>
        <translation>未知的狀態「%1」。</translation>
    </message>
    <message>
        <source>No backup of the chats could be made: </source>
        <translation>無法備份對話：</translation>
    </message>
    <message>
        <source>%1: the disk is full. Free some space; nothing is lost meanwhile.</source>
        <translation>%1：磁碟已滿。請騰出空間；期間不會遺失任何內容。</translation>
    </message>
    <message>
        <source>The message that this one answers is missing from the file.</source>
        <translation>檔案中缺少這則訊息所回答的訊息。</translation>
    </message>
    <message>
        <source>%1: the rebuilt chats could not be put here from %2.</source>
        <translation>%1：無法把重建的對話從 %2 放到這裡。</translation>
    </message>
    <message>
        <source>The chat database was damaged: %1 chats and %2 messages were saved, %3 rows could not be read. The damaged file is kept as %4.</source>
        <translation>對話資料庫已損壞：救回 %1 個對話與 %2 則訊息，有 %3 列無法讀取。損壞的檔案保存為 %4。</translation>
    </message>
    <message>
        <source>%1: cannot be made.</source>
        <translation>%1：無法建立。</translation>
    </message>
    <message>
        <source>The chats were brought from schema %1 to %2; the file as it was is kept as %3.</source>
        <translation>對話已從結構版本 %1 升級到 %2；原檔保存為 %3。</translation>
    </message>
    <message>
        <source>%1: the folder cannot be made.</source>
        <translation>%1：無法建立資料夾。</translation>
    </message>
    <message>
        <source>These chats are open in another Recto (process %1): use that window, or start this one with --profile and another folder.</source>
        <translation>這些對話已在另一個 Recto（行程 %1）開啟：請使用那個視窗，或以 --profile 指定另一個資料夾啟動。</translation>
    </message>
    <message>
        <source>%1: the lock cannot be written; check the folder&apos;s permissions.</source>
        <translation>%1：無法寫入鎖定檔；請檢查資料夾權限。</translation>
    </message>
    <message>
        <source>%1: cannot be written.</source>
        <translation>%1：無法寫入。</translation>
    </message>
    <message>
        <source>Recto ended unexpectedly: %1 unfinished answers were kept as they were.</source>
        <translation>Recto 意外結束：%1 個未完成的回答已照原樣保留。</translation>
    </message>
    <message>
        <source>These chats were written by a newer Recto (schema %1, this one knows %2): they can be read, not changed. Update Recto to go on.</source>
        <translation>這些對話由較新的 Recto 寫入（結構版本 %1，本版支援 %2）：可以閱讀，不能更改。請更新 Recto。</translation>
    </message>
    <message>
        <source>Recto closed before this could be written.</source>
        <translation>在寫入之前 Recto 已關閉。</translation>
    </message>
    <message>
        <source>The chats are open for reading only.</source>
        <translation>對話資料以唯讀開啟。</translation>
    </message>
    <message>
        <source>The chats are not open.</source>
        <translation>對話資料未開啟。</translation>
    </message>
</context>
<context>
    <name>recto::ui::TranscriptView</name>
    <message>
        <source>Not opened: %1 (only http, https and mailto are)</source>
        <translation>未開啟：%1（只開啟 http、https 與 mailto）</translation>
    </message>
    <message>
        <source>Copy this code</source>
        <translation>複製這段程式碼</translation>
    </message>
    <message>
        <source>Copy the message as it was written</source>
        <translation>複製訊息原文</translation>
    </message>
    <message>
        <source>Edit: makes a new version, the old one is kept</source>
        <translation>編輯：建立新版本，舊版會保留</translation>
    </message>
    <message>
        <source>Answer again: makes a new version, the old one is kept</source>
        <translation>重新回答：建立新版本，舊版會保留</translation>
    </message>
    <message>
        <source>Go on where this answer ended</source>
        <translation>從這個回答的結尾繼續</translation>
    </message>
    <message>
        <source>Previous version</source>
        <translation>上一個版本</translation>
    </message>
    <message>
        <source>Next version</source>
        <translation>下一個版本</translation>
    </message>
    <message>
        <source>Copy selection</source>
        <translation>複製選取內容</translation>
    </message>
    <message>
        <source>Open link</source>
        <translation>開啟連結</translation>
    </message>
    <message>
        <source>Copy link address</source>
        <translation>複製連結網址</translation>
    </message>
    <message>
        <source>Copy as text</source>
        <translation>複製為文字</translation>
    </message>
    <message>
        <source>Copy as Markdown</source>
        <translation>複製為 Markdown</translation>
    </message>
    <message>
        <source>Copy code</source>
        <translation>複製程式碼</translation>
    </message>
    <message>
        <source>Edit</source>
        <translation>編輯</translation>
    </message>
    <message>
        <source>Regenerate</source>
        <translation>重新生成</translation>
    </message>
    <message>
        <source>Continue</source>
        <translation>繼續</translation>
    </message>
    <message>
        <source>Select all</source>
        <translation>全選</translation>
    </message>
    <message>
        <source>↓ new text</source>
        <translation>↓ 新文字</translation>
    </message>
    <message>
        <source>↓ to the end</source>
        <translation>↓ 到結尾</translation>
    </message>
    <message>
        <source>New text below, go to the end</source>
        <translation>下方有新文字，移到結尾</translation>
    </message>
    <message>
        <source>Go to the end</source>
        <translation>移到結尾</translation>
    </message>
    <message>
        <source>Go to the end and follow the answer (End)</source>
        <translation>移到結尾並跟隨回答（End）</translation>
    </message>
    <message>
        <source>You</source>
        <translation>你</translation>
    </message>
    <message>
        <source>System prompt</source>
        <translation>系統提示</translation>
    </message>
    <message>
        <source>Answer</source>
        <translation>回答</translation>
    </message>
    <message>
        <source>%1: %2</source>
        <translation>%1：%2</translation>
    </message>
    <message>
        <source>%1, %2: %3</source>
        <translation>%1，%2：%3</translation>
    </message>
    <message>
        <source>Messages</source>
        <translation>訊息</translation>
    </message>
    <message>
        <source>Up and Down go from message to message, the Menu key shows what can be done</source>
        <translation>上下鍵在訊息間移動，選單鍵顯示可用的操作</translation>
    </message>
    <message>
        <source>What the numbers mean</source>
        <translation>數字的意義</translation>
    </message>
</context>
<context>
    <name>recto::ui::WorkloadForm</name>
    <message>
        <source>Sequences: expected numbers from 1 to %1 with commas between, found “%2”.</source>
        <translation>序列：應為 1 到 %1 的數字，以逗號分隔，卻是「%2」。</translation>
    </message>
    <message>
        <source>Depths: expected numbers from 0 to %1 with commas between, found “%2”.</source>
        <translation>深度：應為 0 到 %1 的數字，以逗號分隔，卻是「%2」。</translation>
    </message>
    <message>
        <source>own numbers</source>
        <translation>自訂</translation>
    </message>
    <message>
        <source>automatic</source>
        <translation>自動</translation>
    </message>
    <message>
        <source>CPU</source>
        <translation>CPU</translation>
    </message>
    <message>
        <source>CUDA card</source>
        <translation>CUDA 顯示卡</translation>
    </message>
    <message>
        <source>Workload, in / out</source>
        <translation>工作量，輸入／輸出</translation>
    </message>
    <message>
        <source>Prompt and output tokens of each sequence</source>
        <translation>每個序列的提示與輸出詞元數</translation>
    </message>
    <message>
        <source>Prompt tokens</source>
        <translation>提示詞元</translation>
    </message>
    <message>
        <source>Tokens in each prompt; every prompt is another</source>
        <translation>每個提示的詞元數；每個提示都不同</translation>
    </message>
    <message>
        <source>Output tokens</source>
        <translation>輸出詞元</translation>
    </message>
    <message>
        <source>Every sequence gives exactly this many: the end of turn is ignored</source>
        <translation>每個序列都恰好輸出這麼多：忽略回答結束</translation>
    </message>
    <message>
        <source>Sequences at once</source>
        <translation>同時序列數</translation>
    </message>
    <message>
        <source>One row of the table for each number: 1, 8, 64</source>
        <translation>表中每個數字一組：1, 8, 64</translation>
    </message>
    <message>
        <source>Depths</source>
        <translation>深度</translation>
    </message>
    <message>
        <source>Tokens already in the context before the prompt: 0, 4096</source>
        <translation>提示之前已在上下文中的詞元數：0, 4096</translation>
    </message>
    <message>
        <source>Repeats</source>
        <translation>重複次數</translation>
    </message>
    <message>
        <source>Timed runs a side and row; 6 is a good number, under 5 nothing is clear</source>
        <translation>每邊每組的計時次數；6 次合適，少於 5 次難以判定</translation>
    </message>
    <message>
        <source>Device</source>
        <translation>裝置</translation>
    </message>
    <message>
        <source>What the models run on, the same for both</source>
        <translation>模型在哪裡執行，兩者相同</translation>
    </message>
</context>
</TS>
