-- Renews the lease.
-- KEYS: lease
-- ARGV: token, milliseconds
local refusal = lease_refusal(KEYS[1], ARGV[1])
if refusal then
    return refusal
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return {'ok'}
