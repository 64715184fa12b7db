// The transcript as a screen reader sees it: a list of messages, each named by who, when and the first words.
#pragma once

namespace recto::ui {

// Once, before the first TranscriptView is asked; further calls do nothing.
void install_transcript_accessibility();

}  // namespace recto::ui
