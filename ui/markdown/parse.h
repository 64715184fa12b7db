// One closed piece of Markdown (CommonMark with tables, strike, task lists and bare addresses; HTML is
// text) to blocks. The grammar is md4c's; maths and CJK emphasis are prepare.h's.
#pragma once
#include "ui/markdown/block.h"

namespace recto::ui::markdown {

std::vector<Block> parse(QStringView source);

}  // namespace recto::ui::markdown
