// recto::Error for the layers above the engine, which do not reach into kernels/.
#pragma once
#include "kernels/error.h"
