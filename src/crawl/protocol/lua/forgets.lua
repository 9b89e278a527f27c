-- Claims the items to forget, and reads the first of them.
-- KEYS: lease, forgetting, forget
-- ARGV: token, number of items to read
-- Answers 'ok' and these items.
local lease, forgetting, forget = unpack(KEYS)

local refusal = lease_refusal(lease, ARGV[1])
    or type_refusal(forgetting, 'list')
    or type_refusal(forget, 'list')
if refusal then
    return refusal
end
if redis.call('LLEN', forgetting) == 0 and redis.call('EXISTS', forget) == 1 then
    redis.call('RENAME', forget, forgetting)
end
return {'ok', redis.call('LRANGE', forgetting, 0, ARGV[2] - 1)}
