// CLUSTER TYPES: what a set is asked by the one that directs FAMILY ALTER of types, where rows lie
// on several (alter_types.h; what is done is store/type_part.h).
//
//   a call's text   a piece (call_piece.h), which says for which rows
//                   CLUSTER TYPES LOOK|CONVERT|SEE wanted table family [option ...]
//   the reply       an array: how many cells were found, the encoded key of the row of the first of
//                   them, and what that is
//
// What it is about is that of FAMILY ALTER, and so are its errors; `wanted` is TypePart's.
#pragma once

#include <span>
#include <string_view>

#include "store/type_part.h"

namespace cellar {

struct CommandContext;

std::string_view TypesWord(TypePart::Does does);
// Whether these words of a call between nodes are that.
bool IsTypesCall(std::span<const std::string_view> words);
void CmdClusterTypes(CommandContext& ctx);
// What it replies. False: it is something else.
[[nodiscard]] bool ReadTypesReply(std::string_view reply, FoundCells* found);

}  // namespace cellar
