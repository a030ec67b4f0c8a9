--- What this shard knows of jobs that were sent for flows, groups and outboxes, and have come and gone here.
-- states   none
-- keys     sent strings
--@args     id...
-- returns  for each: `digest=<digest>` of one of an outbox, the state it ended in, or '' if it is unknown
--@flags no-writes
--@include keys
local found = {}
for i = first_id, #ARGV do
  found[#found + 1] = call('GET', key('sent:' .. ARGV[i])) or ''
end
return found
