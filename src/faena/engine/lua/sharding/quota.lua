--- Claims that another shard has made count here from now on, because this shard has some of its part of
-- the queue's limit.
-- states   none
-- keys     window list · clock hash
--@args     epoch, per, instant number...
--          per is the window in us; claims are oldest first
-- returns  OK (also when it was done before)
-- refuses  STALE (the change is published)
--@flags allow-oom
--@arrivals
--@include now, keys, sliding_window, freeze_lane
local name, done = 'window:' .. per, 'burdened:' .. per
if is_sealed(epoch) then
  return 'STALE'
elseif call('HGET', key('clock'), done) == epoch then
  return 'OK'
end

local entries, sum = {}, 0

local function add(instant, number)
  if instant > now - tonumber(per) then
    entries[#entries + 1], sum = { instant, number }, sum + number
  end
end

for _, entry in ipairs(call('LRANGE', key(name), 0, -1)) do
  add(entry_of(entry))
end
for i = first_instant, #ARGV, 2 do
  add(tonumber(ARGV[i]), tonumber(ARGV[i + 1]))
end
table.sort(entries, function(a, b)
  return a[1] < b[1]
end)
call('DEL', key(name))
for _, entry in ipairs(entries) do
  call('RPUSH', key(name), whole(entry[1]) .. ' ' .. whole(entry[2]))
end
if #entries > 0 then
  call('EXPIRE', key(name), math.ceil(tonumber(per) / 1000000) * 2 + 60)
end
call('HSET', key('clock'), name, sum, done, epoch)
return 'OK'
