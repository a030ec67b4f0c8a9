--- Strike off entries of the history that a reader has stored elsewhere.
-- states   none
-- keys     history stream · history_stats hash
--@args     id...
--          of the entries; one that is gone already is no fault
-- returns  how many entries are left
-- What was lost for want of room since the reader began becomes an entry of its own.
--@flags allow-oom
--@sure
--@include now, keys, safe_read, check_arguments, history_record
local history, bytes = key('history'), 0
for i = first_id, #ARGV do
  check(string.find(ARGV[i], '^%d+%-%d+$') and #ARGV[i] < 34, 'an entry')
end
if call('TYPE', history).ok ~= 'stream' then
  return 0
end
for i = first_id, #ARGV do
  for _, entry in ipairs(call('XRANGE', history, ARGV[i], ARGV[i])) do
    bytes = bytes + #(entry[2][4] or '')
  end
end
if #ARGV >= first_id then
  call('XDEL', history, unpack(ARGV, first_id))
end
local left = call('XLEN', history)
pcall(function()
  local count = key('history_stats')
  local kept = left > 0 and math.max(0, count_in(call('HGET', count, 'bytes'), 0) - bytes) or 0
  call('HSET', count, 'bytes', whole(kept))
  write_gap(now)
end)
return call('XLEN', history)
