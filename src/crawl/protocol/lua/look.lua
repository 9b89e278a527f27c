-- Answers where the crawl stands and who runs it, and changes nothing.
-- KEYS: lease, state
-- Answers 'ok', seq, tip, lease; empty where there is none.
local found = redis.call('HMGET', KEYS[2], 'seq', 'tip')
return {'ok', found[1] or '', found[2] or '', redis.call('GET', KEYS[1]) or ''}
