--- Positions in a sorted set: a score and an id, in the order of the server, taken or not.
--@exports passed_in, page_of
--- Whether one id stands before another of the same score: by bytes, as the server sorts them.
local function stands_before(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then
      return x < y
    end
  end
  return #a < #b
end

--- How many of `set` stand before the position (score, id), and whether that position is taken.
local function rank_in(set, score, id)
  local rank = call('ZSCORE', set, id) == score and call('ZRANK', set, id)
  if rank then
    return rank, true
  end
  local low, high = call('ZCOUNT', set, '-inf', '(' .. score), call('ZCOUNT', set, '-inf', score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if stands_before(call('ZRANGE', set, middle, middle)[1], id) then
      low = middle + 1
    else
      high = middle
    end
  end
  return low, false
end

--- How many jobs of `set` are passed before those behind a position, {score, id, is_reverse}.
local function passed_in(set, from)
  if from.id == '' then
    return 0
  end
  local rank, is_taken = rank_in(set, from.score, from.id)
  return from.is_reverse and call('ZCARD', set) - rank or rank + (is_taken and 1 or 0)
end

--- (id · score) … of `size` jobs after those that are passed; oldest first, or newest first.
local function page_of(set, passed, size, is_reverse)
  if is_reverse then
    return call('ZRANGE', set, passed, passed + size - 1, 'REV', 'WITHSCORES')
  end
  return call('ZRANGE', set, passed, passed + size - 1, 'WITHSCORES')
end
