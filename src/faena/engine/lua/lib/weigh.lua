--- Count the bytes of jobs that enter or leave a finished state whose retention bounds them.
--@include read, key, bytes
--@exports weigh_in, weigh_out
--- Jobs have just entered `state` at `now`; `kept` are the bytes of their results.
local function weigh_in(state, ids, kept, now)
  local bytes = now >= counted_since(state) and bytes_in('specs', ids) + kept or 0
  bump(key('clock'), state .. '_bytes', bytes)
end

--- Jobs that stand in `state` are about to leave it. They come oldest first: where that one was
-- counted, all were.
local function weigh_out(state, ids)
  local since, counted = counted_since(state), ids
  if tonumber(call('ZSCORE', key(state), ids[1])) < since then
    counted = {}
    for i, score in ipairs(call('ZMSCORE', key(state), unpack(ids))) do
      counted[#counted + 1] = tonumber(score) >= since and ids[i] or nil
    end
  end
  bump(key('clock'), state .. '_bytes', -bytes_in('specs', counted) - bytes_in('results', counted))
end
