-- Renews the lease, or releases it. Deletes keys of the crawl while it has the lease.
-- KEYS: lease, keys to delete
-- ARGV: token, milliseconds (0: releases the lease, which any connection of the run may have taken)
-- Answers 'ok'; or 'lease' and the lease, if it has another token and is not to be released.
-- Never changes the lease of another run.
local lease = KEYS[1]
local token, milliseconds = unpack(ARGV)

if milliseconds == '0' then
    local held = redis.call('GET', lease)
    if held and run_of(held) == run_of(token) then
        redis.call('DEL', lease)
    end
    return {'ok'}
end
local refusal = lease_refusal(lease, token)
if refusal then
    return refusal
end
redis.call('PEXPIRE', lease, milliseconds)
if #KEYS > 1 then
    redis.call('DEL', unpack(KEYS, 2))
end
return {'ok'}
