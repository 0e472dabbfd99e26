package sigv4

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// What all signatures of vectors have in common.
const (
	vectorSecret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
	vectorScope  = "AKIDEXAMPLE/20150830/us-east-1/service/aws4_request"
	vectorHost   = "example.amazonaws.com"
	vectorStamp  = "20150830T123600Z"
)

// vector is a request and its signatures by Amazon's test suite.
type vector struct {
	name, method, target string
	headers              []string // each as name:value, besides those that a signer adds
	body                 string
	token                string // of a session
	tokenAfter           bool   // the token was added to what was signed
	elsewhere            bool   // it was signed for another path, without dots and double slashes
	header, url          string // the signatures in a header and in a URL
}

// vectors are those of tests/aws-signing-test-suite/v4 in github.com/awslabs/aws-c-auth at 495329c2433034bd8fd53fc6ba9e0202d3fac876,
// by their names there. What HTTP cannot have in a path or a query is escaped in the targets.
var vectors = []vector{
	{
		name: "get-header-key-duplicate", method: "GET", target: "/", headers: []string{"my-header1:value2", "my-header1:value2", "my-header1:value1"},
		header: "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea",
		url:    "3349ee0b81b4b589da0ff28a395c3591e04de515651dd74f298fa992d1507a97",
	},
	{
		name: "get-header-value-multiline", method: "GET", target: "/", headers: []string{"my-header1:value1\n  value2\n     value3"},
		header: "cfd34249e4b1c8d6b91ef74165d41a32e5fab3306300901bb65a51a73575eefd",
		url:    "e6f5def831211aca02987a44b96826706278c7bc078112ae0263659c5b2f2d56",
	},
	{
		name: "get-header-value-order", method: "GET", target: "/", headers: []string{"my-header1:value4", "my-header1:value1", "my-header1:value3", "my-header1:value2"},
		header: "08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601a50643f830c755c01",
		url:    "313720e71ca6202fdcfa9b20f88de01a4eb0638a83c833b1c184359a4eda864e",
	},
	{
		name: "get-header-value-trim", method: "GET", target: "/", headers: []string{"my-header1: value1", "my-header2: \"a   b   c\""},
		header: "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736",
		url:    "e7bb0fd515e125e1aec2ecc4c0c17484fb06f6846b927c35e46005dd3df3acd4",
	},
	{
		name: "get-relative-normalized", method: "GET", target: "/example/..", elsewhere: true,
		header: "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
		url:    "e93c787ed7f371d5c6b165c1b38ede9550f4dce4144713e844b25b7192d3865d",
	},
	{
		name: "get-relative-relative-normalized", method: "GET", target: "/example1/example2/../..", elsewhere: true,
		header: "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
		url:    "e93c787ed7f371d5c6b165c1b38ede9550f4dce4144713e844b25b7192d3865d",
	},
	{
		name: "get-relative-relative-unnormalized", method: "GET", target: "/example1/example2/../..",
		header: "dc33e0856fd4baca4d7aa2146c38958283844764f38c74252a333df5e613003b",
		url:    "b45db0bfd1cf15003493b733e33aa208dd981bd0e63037a6ed953f71d2118a16",
	},
	{
		name: "get-relative-unnormalized", method: "GET", target: "/example/..",
		header: "eca7ead57bb5aa5c8e28007acd4ff04e1ff9a0ff3b237ec1554a184887ff9282",
		url:    "cbcb213b928a077e43275df47b500f1dfaa864ab3f5a18f6b95f4ff0938167ee",
	},
	{
		name: "get-slash-dot-slash-normalized", method: "GET", target: "/./", elsewhere: true,
		header: "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
		url:    "e93c787ed7f371d5c6b165c1b38ede9550f4dce4144713e844b25b7192d3865d",
	},
	{
		name: "get-slash-dot-slash-unnormalized", method: "GET", target: "/./",
		header: "68714168e6557f8f2de0ef956fc24dc2593a4bd2961f8df51898d8a134695145",
		url:    "a9b13e8f3484d9505bf1a6f347219f8f35b0fe8f128ceea597efc146a3dfe90c",
	},
	{
		name: "get-slash-normalized", method: "GET", target: "//", elsewhere: true,
		header: "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
		url:    "e93c787ed7f371d5c6b165c1b38ede9550f4dce4144713e844b25b7192d3865d",
	},
	{
		name: "get-slash-pointless-dot-normalized", method: "GET", target: "/./example", elsewhere: true,
		header: "ef75d96142cf21edca26f06005da7988e4f8dc83a165a80865db7089db637ec5",
		url:    "35034b1a0bdd969f346975386daf8aedfd4976573b8348cf4f67eaa41c5857de",
	},
	{
		name: "get-slash-pointless-dot-unnormalized", method: "GET", target: "/./example",
		header: "beb03f223f7deae4146464f06e29eebbee9c8afbe15c290cf07aa8b119e14cff",
		url:    "72b11f16d9530b18204bfb71f2d6ab085894c0ed8d352730a6e76234c58b5e10",
	},
	{
		name: "get-slash-unnormalized", method: "GET", target: "//",
		header: "c88bcd3d312d75078c0cd961d6deae3f4c754924b01669efcfcb439fd5e5b76e",
		url:    "b2a9542809db687769200f56a844a03f2bd0291d6eb90232d5101c6a579446cd",
	},
	{
		name: "get-slashes-normalized", method: "GET", target: "//example//", elsewhere: true,
		header: "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84",
		url:    "c1834e8fb0307243711f0f907f6ab7311ed300d87f13792d7ee4da89ab93e082",
	},
	{
		name: "get-slashes-unnormalized", method: "GET", target: "//example//",
		header: "87cca117541a147f6df867677d98a7d80dff226d2bfca9e4ffa899665623c7e5",
		url:    "822a5a9ba28072c5ab2bb4a6307d0c88276d40e49fec6b724c03fb4d4ba60fc2",
	},
	{
		name: "get-space-normalized", method: "GET", target: "/example%20space/",
		header: "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741",
		url:    "7a1f416954786484c9824d93c1f26ef64acb9b1b6c9154d08c9f07d0e394abf6",
	},
	{
		name: "get-space-unnormalized", method: "GET", target: "/example%20space/",
		header: "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741",
		url:    "7a1f416954786484c9824d93c1f26ef64acb9b1b6c9154d08c9f07d0e394abf6",
	},
	{
		name: "get-unreserved", method: "GET", target: "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
		header: "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f",
		url:    "95968482db1b9e0fadef6efc1bd24689f77c77d9ef56919c96a28cc92e0d6005",
	},
	{
		name: "get-utf8", method: "GET", target: "/%E1%88%B4",
		header: "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85",
		url:    "10eae3f14a260bd3911cc6d008d3c576d143b05b62f09782a7a4b37f52178e44",
	},
	{
		name: "get-vanilla", method: "GET", target: "/",
		header: "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
		url:    "e93c787ed7f371d5c6b165c1b38ede9550f4dce4144713e844b25b7192d3865d",
	},
	{
		name: "get-vanilla-empty-query-key", method: "GET", target: "/?Param1=value1",
		header: "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb",
		url:    "49096700cbbaa5753443850f40df10f904fc2fdb544dc9512203cc77c471a9de",
	},
	{
		name: "get-vanilla-query", method: "GET", target: "/",
		header: "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
		url:    "e93c787ed7f371d5c6b165c1b38ede9550f4dce4144713e844b25b7192d3865d",
	},
	{
		name: "get-vanilla-query-order-encoded", method: "GET", target: "/?Param-3=Value3&Param=Value2&%E1%88%B4=Value1",
		header: "371d3713e185cc334048618a97f809c9ffe339c62934c032af5a0e595648fcac",
		url:    "c5f1848ceec943ac2ca68ee720460c23aaae30a2300586597ada94c4a65e4787",
	},
	{
		name: "get-vanilla-query-order-key-case", method: "GET", target: "/?Param2=value2&Param1=value1",
		header: "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
		url:    "86012e2c9ad4d77369f5d81c11f75158aae4f895a085212cc6d3f923d300bed5",
	},
	{
		name: "get-vanilla-query-unreserved", method: "GET", target: "/?-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz=-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
		header: "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197",
		url:    "8e76a88a7433637b12778d5592799b29ad21ecd6cf6325051c21d86f0acda2bf",
	},
	{
		name: "get-vanilla-utf8-query", method: "GET", target: "/?%E1%88%B4=bar",
		header: "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04",
		url:    "0bdd809b1519ac4f0c1dc3540e2cc46bd0c7f778eda408b2ebf3b913d21ff600",
	},
	{
		name: "get-vanilla-with-session-token", method: "GET", target: "/", token: "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267",
		header: "07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8",
		url:    "7ff2b50b376cb4d151970630573d6291dc128cc5c2a12ffb237f73cc53f67b6c",
	},
	{
		name: "post-header-key-case", method: "POST", target: "/",
		header: "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
		url:    "2ce6e6d2e0cf2f9d1b55fafec88cd20574c31dc2e7631979f71ba2310083e95b",
	},
	{
		name: "post-header-key-sort", method: "POST", target: "/", headers: []string{"my-header1:value1"},
		header: "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c",
		url:    "c09d07e0d55871f10f2a6d350d994acf6825a3cae70673d7def55616e6119dd7",
	},
	{
		name: "post-header-value-case", method: "POST", target: "/", headers: []string{"my-header1:VALUE1"},
		header: "cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d",
		url:    "0698bc9e4f7f9139065ba2909c0e99da257e8e2a42492a097bcd46d792391fed",
	},
	{
		name: "post-sts-header-after", method: "POST", target: "/", token: "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==", tokenAfter: true,
		header: "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
		url:    "2ce6e6d2e0cf2f9d1b55fafec88cd20574c31dc2e7631979f71ba2310083e95b",
	},
	{
		name: "post-sts-header-before", method: "POST", target: "/", token: "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==",
		header: "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead",
		url:    "46c2e3c63c1dbe7d39f8ada16fe7f001c1f56c5791441565323677f96308871c",
	},
	{
		name: "post-vanilla", method: "POST", target: "/",
		header: "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
		url:    "2ce6e6d2e0cf2f9d1b55fafec88cd20574c31dc2e7631979f71ba2310083e95b",
	},
	{
		name: "post-vanilla-empty-query-value", method: "POST", target: "/?Param1=value1",
		header: "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11",
		url:    "a9ef26247f293bffe40eeff86a0480ba8c14d31503b2e0c3399e3a16bf1a3682",
	},
	{
		name: "post-vanilla-query", method: "POST", target: "/?Param1=value1",
		header: "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11",
		url:    "a9ef26247f293bffe40eeff86a0480ba8c14d31503b2e0c3399e3a16bf1a3682",
	},
	{
		name: "post-x-www-form-urlencoded", method: "POST", target: "/", headers: []string{"content-type:application/x-www-form-urlencoded"}, body: "Param1=value1",
		header: "d3875051da38690788ef43de4db0d8f280229d82040bfac253562e56c3f20e0b",
		url:    "89a40deed0f26f9461242825a082d2222717248abc7ab41f552ad84a94ad46e9",
	},
	{
		name: "post-x-www-form-urlencoded-parameters", method: "POST", target: "/", headers: []string{"content-type:application/x-www-form-urlencoded; charset=utf-8"}, body: "Param1=value1",
		header: "328d1b9eaadca9f5818ef05e8392801e091653bafec24fcab71e7344e7f51422",
		url:    "0dbeb9b026c7b6675f266b8427efec9b4fa8b1f6ef1477d717aea231106eab4d",
	},
}

// request returns the request of a vector with its headers; signed are the names of those that were signed.
func (v *vector) request(more ...string) (r *Request, signed []string) {
	headers := map[string][][]byte{}
	for _, line := range slices.Concat([]string{"host:" + vectorHost}, v.headers, more) {
		name, value, _ := strings.Cut(line, ":")
		headers[name] = append(headers[name], []byte(value))
		if !slices.Contains(signed, name) {
			signed = append(signed, name)
		}
	}
	slices.Sort(signed)
	path, query, _ := strings.Cut(v.target, "?")
	return &Request{Method: v.method, Path: path, Query: query, Sum: sha256.Sum256([]byte(v.body)), Header: func(name string) [][]byte { return headers[name] }}, signed
}

// check checks that the signature is good for the request, but not with another body, unless it is one for another path.
func (v *vector) check(t *testing.T, r *Request) {
	t.Helper()
	now, err := time.Parse(stampForm, vectorStamp)
	if err != nil {
		t.Fatal(err)
	}
	want := ""
	if v.elsewhere {
		want = "wrong"
	}
	if err := verify(r, vectorSecret, now); kindOf(err) != want {
		t.Errorf("%v, want %q", err, want)
	}
	r.Sum[0]++
	if err := verify(r, vectorSecret, now); kindOf(err) != "wrong" {
		t.Errorf("another body: %v", err)
	}
}

func TestVectors_header(t *testing.T) {
	t.Parallel()
	for _, v := range vectors {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			more := []string{"x-amz-date:" + vectorStamp}
			if v.token != "" && !v.tokenAfter {
				more = append(more, "x-amz-security-token:"+v.token)
			}
			if v.body != "" {
				sum := sha256.Sum256([]byte(v.body))
				more = append(more, "content-length:"+strconv.Itoa(len(v.body)), "x-amz-content-sha256:"+hex.EncodeToString(sum[:]))
			}
			r, signed := v.request(more...)
			others := r.Header
			r.Header = func(name string) [][]byte {
				if name == "authorization" {
					return [][]byte{[]byte(algorithm + " Credential=" + vectorScope + ", SignedHeaders=" + strings.Join(signed, ";") + ", Signature=" + v.header)}
				}
				return others(name)
			}
			v.check(t, r)
		})
	}
}

func TestVectors_url(t *testing.T) {
	t.Parallel()
	for _, v := range vectors {
		if v.tokenAfter {
			continue // the token of a URL for SQS is signed
		}
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			var more []string
			if v.body != "" {
				more = append(more, "content-length:"+strconv.Itoa(len(v.body)))
			}
			r, signed := v.request(more...)
			params := []string{
				"X-Amz-Algorithm=" + algorithm, "X-Amz-Credential=" + url.QueryEscape(vectorScope), "X-Amz-Date=" + vectorStamp,
				"X-Amz-SignedHeaders=" + url.QueryEscape(strings.Join(signed, ";")), "X-Amz-Expires=3600", "X-Amz-Signature=" + v.url,
			}
			if r.Query != "" {
				params = append(params, r.Query)
			}
			if v.token != "" {
				params = append(params, "X-Amz-Security-Token="+url.QueryEscape(v.token))
			}
			r.Query = strings.Join(params, "&")
			v.check(t, r)
		})
	}
}
