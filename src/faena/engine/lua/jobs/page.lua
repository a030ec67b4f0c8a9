--- One page of a state's ids, in order or in reverse, behind a place.
-- states   none
-- keys     the state's zset
-- args     state · reverse 1|'' · limit · after id ('' from the start) · after score
-- returns  (id · score) …
-- The place is a score and an id, and need not be taken any more: reading goes on behind it.
--@flags no-writes
--@include key, rank
local from = { is_reverse = ARGV[2] == '1', id = ARGV[4], score = ARGV[5] }
local set = key(ARGV[1])
return page_of(set, passed_in(set, from), tonumber(ARGV[3]), from.is_reverse)
