"""URLs that are difficult for ports of w3lib, and pieces of URLs, for vectors and fuzzer."""

SCHEMES = """
http https HTTP hTTps ftp file ws wss data about javascript mailto tel sip sips foo gopher svn+ssh
git+ssh rtsp nfs telnet view-source 1http h-t.t+p hdl imap mms ſttp http%73
""".split() + [
    "", "ht\ttp", " http", "ht tp",
]

SEPARATORS = ["://"] * 12 + [":", ":/", ":///", ":////", ":\\\\", ":/\\", ":\\/", "//", ":\t//", "",
              "://\\", ":// "]

USER_INFO = """
u@ u:p@ :@ @ u:@ :p@ a@b@ %41@ %zz@ %2@ u%3Ap:q@ é@ u:é:ü@ a;b=c@ [@ ]@ []@ [::1]@ u%40@ a|b:c|d@
a%2Fb@ U%25%32@ ℀@ \\@ a\\b@ %00@
""".split() + ["u p@", "u\u00a0@"]

HOSTS = """
example.com EXAMPLE.Com www.example.co.uk localhost 127.0.0.1 a.b.c.d.e.f x_y.example example.com.
example..com .example.com H%2F H%C3%A9 h%zz %41.com 1.2.3.4 0x7f.1 [::1] [::0:1] [::ffff:1.2.3.4]
[2001:DB8::A:0:0:1] [fe80::1%25eth0] [fe80::1%ETH0] [fe80::1%é] [1:2:3:4:5:6:7:8]
[1:2:3:4:5:6:7::] [::2:3:4:5:6:7:8] [1::2::3] [::g] [1.2.3.4] [v1.a] [v1.a:b] [V1.a] [v.a] [v1.]
[v1.é] [v1.[:] [v1.[] [] [::1 ::1] a[::1] [::1]a [::1.2.3.04] [::1%a%b] [::1%] bücher.de BÜCHER.DE
faß.de FAẞ.de βόλος.com ΣΑΣ.gr ΑΣ.gr ΟΔΥΣΣΕΥΣ.gr ΑΣ%ΑΣ İstanbul.tr ı.tr ℂ.é ℡.é 中国。cn 中国．cn 中国｡cn
例え.テスト xn--fiqs8s.cn xn--é.de אבג.il אa.il א1.il ا١.eg 1א.il a℀b a⁈b ⑴.é Å.com Å.com é.com ﬁ.é ﷺ.é
a＠b a：b a／b a？b a＃b a＼b ㏂.é ㍱.é ǆ.é ŉ.é ΐ.gr ᾳ.gr ᾼ.gr ͅα.gr ᏸ.us Ა.ge ꭰ.us 𐐀.us 𞤀.us 🄰.é 😀.ws
☃.net हिन्दी.भारत 한국.kr 각.kr ড়.bd ক্ষ.bd 𑂚.in a--b.é -é- _é a,b.é a;b=c a'b a"b a|b a`b {a} <a>
a^b a*b a!b a$b a(b) a~b a+b
""".split() + [
    "", "a b", "h ", " h", "a\u00a0b", "\ufeffh", "a\u00adb", "\u00ad", "\u00ad\u00ad.é",
    "a\u200db",
    "a\u200bé", "é\u2060e", "a\u0338", "e\u0301.com", "e\u200d\u0301.com", "\u1e9b\u0323.é",
    "a\x7fb",
    "a\x00b", "\x00é", "a\x1f", "é\x00", "\ue000é", "\u2028é", "a\u3000b", "\u3000é",
    "a" * 63 + ".é",
    "a" * 64 + ".é", "a" * 70 + ".com", "é" * 56, "é" * 57, "é" * 64, "ü" * 30 + "a" * 30,
    "\ufdd0é", "\U000e0041é", "\u0340é", "\u200eé", "א\u200eא", "אב\u0591", "\u0591אב", "à\u0316",
    "\U0001109a\u0334", "\U00011099\u200d\U000110ba", "\u1b05\u1b35", "\u1b05\u200d\u1b35",
    "\uac00\u11a8", "\u1100\u1161\u200d\u11a8", "\u0345\u03b1", "\u03b1\u0345", "é" + "a" * 59,
    "\u212a.com", "[v1.\u212a:]",
]

PORTS = [""] * 6 + [":", ":80", ":443", ":0080", ":0", ":00", ":8080", ":65535", ":65536", ":99999",
         ":-1", ":+1", ":1 ", ": 1", ":٣", ":１", ":a", ":80:80", ":8\t0", ":²", ":1_0",
         ":" + "0" * 4299 + "1", ":" + "0" * 4300 + "1", ":%38", ":80\\"]

PATHS = """
/ /a /a/b /A/B.html /a/ /a//b // /// //// /. /.. /./ /../ /a/. /a/.. /a/./b /a/../b /a//../b
/../../a /.a /..a /... /a/.../b /%2e /%2E%2e/b /.%2e/x /a/%2e%2e/b ..%2Fb /..%2Fb /%2F /%2f /%25
/%3b /%3B /%3F /%3f /%23 /%5B /[ /] /[a] /| /%7C /%7c /^ /%5E /" /{x} /<x> /` /%2B /+ /%20 /a%20b
/~u /%7Eu /é /%C3%A9 /%E9 /%c3%a9 /%zz /%2 /% /%% /%2%35 /%%41 /%2525 /%252F /%%25 /%[41 /%é
/%\u00e9 /a;p /a; /a;p;q /a;p/b /a;p/b;q /;p /..;p /a/..;p /../;p /a;%41 /a;p[ /a;p|é /a;/..
/a;p/.. /a\\b /\\a \\ /a\\..\\b \\\\h\\p /a:b /a@b /a=b /a,b /a&b /a'b /a(b) /a*b /a!$ /中文/路径 /한국어
/\U0001f600 /%F0%9F%98%80 /%00 /%0A /%0d /a%3Fb /a%3Bb%2Fc /%26 /%3D /%41%42 /%61 /a%2F..%2Fb a
./a ../a a/../b ;p
""".split() + [
    "", "", "", "/a b", " /a", "/a ", "/a\tb", "/a\nb", "/a\r\nb", "/\x00", "/\x7f", "/\u00a0",
    "/\u3000",
    "/\u2028", "/e\u0301", "/\ufeff", "/a\\", "/a\t/.\t./b",
]

QUERIES = """
? ?a ?a= ?= ?a=1 ?b=2&a=1 ?a=2&a=1 ?a=1&a=1 ?& ?&& ?a&& ?&a ?a=&a ?=a ?==a ?a==b ?a=b=c ?a=1;b=2
?;a ?a+b=c+d ?a%20b ?a%2Bb ?+ ?%2B ?%20 ?a/b ?a?b ?a:b ?a@b ?a'b ?%27 ?a[b]=c ?a%5Bb%5D=c ?%zz ?%
?%2 ?%%41 ?%25 ?%2541 ?a%26b=c ?a%3Db=c ?a%21 ?a-&a%21 ?a-=1&a=2&a%21=3 ?a%2B&a+&a%20 ?é=ü ?%E9
?%C3%A9&%E9&é ?a~b ?a*b ?a(b) ?a,b ?a!b ?a$b ?a|b ?a\\b ?a^b ?a"b ?a<b> ?a{b} ?中=文 ?%F0%9F%98%80
?utm_source=x&utm_medium=y&id=3 ?q=a+b&page=2&sort=asc ?z&y&x ?a&A&_&-&.&~&1 ?a=%&a=%25
?a=b&a%00=b ?%3D=%3D ?&=& ?a=://x ?u=http://h/p?q%23 ?a=%0A ?a&a=&a%3D ?%61=1&a=0 ?b=%7E&b=~
?a%2fb&a%2Fb ?b&a%&a&a%2
""".split() + [
    "", "", "", "?a b", "?a=b c&d", "?a\tb", "?\x00", "?\x7f", "? ", "?a=1 ", "?\n",
    "?" + "&".join(f"k{n * 7 % 40}=v{n}" for n in range(40)),
]

FRAGMENTS = """
# #a #! #!/a/b #a#b #a?b #?a #%41 #%zz #é #[] #| #a/b #:// ##
""".split() + [
    "", "", "", "", "# a", "#a\tb", "#a ",
]

METHODS = ["GET", "get", "POST", "Put", "", " get ", "ß", "ŉ", "ﬁ", "İ", "é", "\u0345", "ǆ",
    "x\"\\\n",
           "\U0001f600", "\x7f\x00\x08\x0c", "дать", "ΐ", "custom-Method"]

BODIES = [b"", b"a=1", b"\x00\xff\xfe", "é".encode(), bytes(range(256)), b'{"a": 1}', b"x" * 2000,
          b"y" * 2048, b"z" * 2049, b"w" * 5000, b"v" * 10_000]

WHOLE = """
http:h http:/h/x http:///h/x //h/x h/x /x mailto:a@b javascript:alert('http://x') foo:a#://
1http://h/ about: about:blank ABOUT:blank data: data:,a?z=1&b data:text/html,<b>x</b>?b&a DATA:,x
foo:///a foo://h foo://h? foo://h/a;p tel:123;a;b?:// sip:a;b@c?x=:// ://h http:// http://?
http://# https:///?a http:?a=:// ftp:a;b?:// http:\\\\h\\p\\..\\q?a\\b#c\\d foo:\\\\h://x
foo://h\\p/q http://h;p/q http://u@ http://@ http://:80 http://:80/ file:///etc/passwd
file:/etc/passwd file:c:\\x?:// file://h/a;b view-source:http://h/b?b&a http://h?x=://#y ?:// #://
;://a a;b://c //h/p;q?z&a=:// /a/../b?:// a/../b?:// ..?:// http://http://h//x
http://h/http://g/../x http:%2F%2Fh/?:// foo:/.//x:// foo:/..//x:// svn+ssh:a:// svn+ssh:?://
hdl:a;b:// http://[]@v1.a/ http://]@[::1]/ http://]@[::1/ http://[u]@h/ http://[u]@1.2.3.4/
http://[@[::1]/ http://a[@[::1]/] http:////h//p foo:////h//p foo:/%2F%2Fh?://
""".split() + [
    "", " ", "\x00", " http://h/ ", "\x01http://h/\x1f", "\u00a0http://h/", "\ufeffhttp://h/",
    "h\tt\nt\rp://h\t/a", "http://h :?", "http://h \x00", "http://h\x01:#", "http://h /p",
    "http:// ",
    "http:// /", "foo:// ", "foo://h ", "foo:a ://", "http://h/ ?a #b ", "http:\n//h/",
]

PIECES = """
% %2 %25 %2F %2f %3B %3b %3F %23 %2e %2E %00 %7F %C3%A9 %E9 %zz + & = ; ? # / // \\ @ : :: [ ] | .
.. ... /./ /../ /.. /. ' " < > { } ^ ` ~ ! $ * ( ) , _ - é ß Σ ς İ ı ſ K Å ℀ ⁈ ／ ？ ＃ ＠ ： ＼ 。 ． ｡ א
ا ١ ٣ xn-- :// :80 :0 [::1] v1. %25%32 %2%35 ͅ ﬁ 中 😀 🄰 ㏂
""".split() + [
    " ", "\t", "\n", "\r", "\x00", "\x0b", "\x1f", "\x7f", "\x85", "\u00a0", "\u00ad", "\u200b",
    "\u200c",
    "\u200d", "\u2028", "\u2060", "\u3000", "\ufeff", "\ufe0f", "\u0301", "\u0345", "\u0338",
    "\u0327",
    "\u20e3", "\ue000", "\ufffd", "\U000e0041",
]
