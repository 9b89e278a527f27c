-- Releases the lease of a run that ends with an error. Any connection of the run may have taken it.
-- KEYS: lease
-- ARGV: token
local held = redis.call('GET', KEYS[1])
if held and run_of(held) == run_of(ARGV[1]) then
    redis.call('DEL', KEYS[1])
end
return {'ok'}
