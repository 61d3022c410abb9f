package lockform

// IsNumber reports whether a value is a whole number, like a counter. length is the length
// of the complete value.
func IsNumber(value string, length int64) bool {
	return value != "" && len(value) <= 20 && int64(len(value)) == length && all(value, digits)
}

// Number returns the form of a number without a TTL that no other form explains.
// [Recognize] does not know the TTL, so the caller asks for this form.
func Number() *Form { return &number }

var number = Form{
	Library: "a counter, or a lock by SETNX with a number", Companion: true,
	Refused: "a number without a TTL may count fencing tokens, and must then never go back; if it is known to be a lock, give it a TTL (PEXPIRE) and it ends by itself",
}
