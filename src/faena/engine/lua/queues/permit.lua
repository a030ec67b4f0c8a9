--- What would let scripts fail here: commands that the user may not run, and keys of another type.
-- states   none
-- keys     those it is asked about
--@args     number, line...
--          number of commands, then each in a line, * for a key of the queue, then (key · type) …
-- returns  {command} … that are not permitted · {key · type} … that are of another type
--@flags no-writes
--@include keys, check_arguments
local denied, strange = {}, {}
local first_key = first_line + size_of(number, 'number')

local function may_run(line)
  local words = {}
  for word in string.gmatch(line, '%S+') do
    words[#words + 1] = word == '*' and key('conf') or word
  end
  local is_known, may = pcall(redis.acl_check_cmd, unpack(words))
  return is_known and may, words[1]
end

for i = first_line, redis.acl_check_cmd and first_key - 1 or 0 do   -- which servers before 7.0 have not
  local may, verb = may_run(ARGV[i])
  denied[#denied + 1] = not may and verb or nil
end
for i = first_key, #ARGV, 2 do
  local found = call('TYPE', key(ARGV[i]))['ok']
  if found ~= 'none' and found ~= ARGV[i + 1] then
    strange[#strange + 1], strange[#strange + 2] = ARGV[i], found
  end
end
return { denied, strange }
