-- Removes what is forgotten, now that the log has it; keeps what could not be read.
-- KEYS: lease, forgetting, rejected
-- ARGV: token, how many items are done with, the rejects among them
local lease, forgetting, rejected = unpack(KEYS)

local refusal = lease_refusal(lease, ARGV[1])
    or type_refusal(forgetting, 'list')
    or type_refusal(rejected, 'list')
if refusal then
    return refusal
end
for from = 3, #ARGV, CHUNK do
    redis.call('RPUSH', rejected, unpack(ARGV, from, math.min(from + CHUNK - 1, #ARGV)))
end
redis.call('LTRIM', forgetting, ARGV[2], -1)
return {'ok'}
