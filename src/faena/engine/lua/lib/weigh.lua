--- Count the bytes of jobs that enter or leave a finished state whose retention bounds them.
--@include key, bytes
--- Add jobs that stand in `state` to its bytes (`sign` 1) or take them out (-1).
local function weigh(state, ids, sign)
  local since, scores, counted = counted_since(state), call('ZMSCORE', key(state), unpack(ids)), {}
  for i, id in ipairs(ids) do
    if tonumber(scores[i]) >= since then
      counted[#counted + 1] = id
    end
  end
  call('HINCRBY', key('clock'), state .. '_bytes', sign * bytes_of(counted))
end
