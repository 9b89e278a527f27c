-- Ends a run: gives what is claimed and not committed back to the source where that moves few
-- items, and releases the lease.
-- KEYS: lease, processing, source
-- ARGV: token, most items to move
-- Answers 'ok', items given back, items left in processing, length of the source.
local lease, processing, source = unpack(KEYS)
local most = tonumber(ARGV[2])

local refusal = lease_refusal(lease, ARGV[1])
    or type_refusal(processing, 'list')
    or type_refusal(source, 'list')
    or source_give_back_refusal(processing, source)
    or permission_refusal('DEL', lease)
if refusal then
    return refusal
end
local back, left = source_give_back(processing, source, most)
redis.call('DEL', lease)
return {'ok', back, left, redis.call('LLEN', source)}
