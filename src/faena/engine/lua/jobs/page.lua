--- One page of a state's ids, in order or in reverse, behind a position.
-- states   none
-- keys     the state's zset
--@args     state, is_reverse?, limit, id?, score?
--          is_reverse 1 for the last first; id and score of the place, '' from the start
-- returns  (id · score) …
-- The position is a score and an id, and need not be taken any more: reading goes on behind it.
--@flags no-writes
--@include keys, paging
local from = { is_reverse = is_reverse == '1', id = id, score = score }
local set = key(state)
return page_of(set, passed_in(set, from), tonumber(limit), from.is_reverse)
