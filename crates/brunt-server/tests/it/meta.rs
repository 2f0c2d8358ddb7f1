//! Meta commands as transcripts, in the form of those of the classic ones; the real memcached must answer them alike.

/// (sent, answered)
pub(crate) const SHARED: &str = r"
    // Retrieval, and what it can tell.
    mg a\nmg a q\nmg none k Oq\nmn\n => EN\nEN knone Oq\nMN\n
    ms a 3 F7 T100\nabc\nmg a\nmg a v\nmg a s v f c k Oxy\nmg  a   v \n mg a v\n
        => HD\nHD\nVA 3\nabc\nVA 3 s3 f7 c1 ka Oxy\nabc\nVA 3\nabc\nVA 3\nabc\n
    ms a 1\n5\nmg a u v h\nmg a h v\nmg a h l t\nmg a P1 L2 v\n => HD\nVA 1 h0\n5\nVA 1 h0\n5\nHD h1 l0 t-1\nVA 1\n5\n
    set a 0 0 1\nx\nmg a v\nms a 1\ny\nget a\nmg a q k\n => STORED\nVA 1\nx\nHD\nVALUE a 0 1\ny\nEND\nHD ka\n
    ms a 1\nx\nmg a T100 t\ntouch a 0\nmg a t\nmg a T0\nmg none T9\n => HD\nHD t100\nTOUCHED\nHD t-1\nHD\nEN\n
    // Who is to renew a value: of what is missing, of what is invalid, of what has not long to live.
    mg a v N30 Oxy k\nmg a v N30 k s\nms a 1\nx\nmg a N30 v\n => VA 0 Oxy ka W\n\nVA 0 ka s0 Z\n\nHD\nVA 1\nx\n
    mg b N30 q v k\nmg b N30 q v k\n => VA 0 kb W\n\nVA 0 kb Z\n\n
    ms a 1 T20\nx\nmg a R30 v\nmg a R30 v\nmg a v\nmg a R10\n => HD\nVA 1 W\nx\nVA 1 Z\nx\nVA 1 Z\nx\nHD Z\n
    ms a 1\nx\nmg a R30 v\n => HD\nVA 1\nx\n
    ms a 1\nx\nmd a I T30\nmg a v c\nmg a v c\nget a\nmd a I\nmg a v\nset a 0 0 1\ny\nmg a v\n
        => HD\nHD\nVA 1 c2 X W\nx\nVA 1 c2 Z X\nx\nVALUE a 0 1\nx\nEND\nHD\nVA 1 X W\nx\nSTORED\nVA 1\ny\n
    // A unique that is too old, and one that is too new.
    ms a 1\nx\nms a 1\ny\nms a 2 I C1\nzz\nmg a v c\nmg a v c\n => HD\nHD\nHD\nVA 2 c3 X W\nzz\nVA 2 c3 Z X\nzz\n
    ms a 1\nx\nms a 1\ny\nmd a I\nmg a\nms a 1 I C1 T-1\nz\nmg a v t\n => HD\nHD\nHD\nHD X W\nHD\nVA 1 t-1 Z X\nz\n
    ms a 1\nx\nms a 1 I C99\ny\nmg a v\n => HD\nEX\nVA 1\nx\n
    // Stores.
    ms a 3 c k Oz F5 T0\nabc\nms a 3 C99\nabc\nms b 1 C99 k Oa\nx\nms a 3 C1 c\nxyz\nmg a v\n
        => HD c1 ka Oz\nEX\nNF kb Oa\nHD c2\nVA 3\nxyz\n
    ms a 1 MR\nx\nms a 1 MA\nx\nms a 1 MP\nx\nms a 1 ME\nm\nms a 1 ME\nn\nms a 1 MA F9 c\ny\nms a 1 MP\nw\nms a 1 MR\nz\nms a 1 MS\ny\nmg a v f\n
        => NS\nNS\nNS\nHD\nNS\nHD c2\nHD\nHD\nHD\nVA 1 f0\ny\n
    ms a 1\nx\nms a 1 MP C9\nz\nms a 1 ME C1\nz\nms e 1 ME C1\nz\nms n 1 MR C1\nz\nms a 1 MA C1\nz\nmg a v\n
        => HD\nEX\nNS\nHD\nNF\nHD\nVA 2\nxz\n
    ms a 1 q\nx\nms a 1 q ME\ny\nms a 1 q C9 Oa\ny\nmg a v\nms a 0\n\nmg a v\n => NS\nEX Oa\nVA 1\nx\nHD\nVA 0\n\n
    ms a 1 T-1\nx\nmg a\n => HD\nEN\n
    // Removal.
    md a\nms a 1\nx\nmd a C9\nmd a q k Oq\nmd a k Oq\nmd a q\n => NF\nHD\nEX\nNF ka Oq\nNF\n
    // Numbers.
    ma n\nma n k Oq\nma n N0 J13 v t c\nma n v\nma n D5 MI v\nma n M+ D1 v\nma n M- v\nma n MD D100 v k Oq\nmg n v\n
        => NF\nNF kn Oq\nVA 2 t-1 c1\n13\nVA 2\n14\nVA 2\n19\nVA 2\n20\nVA 2\n19\nVA 1 kn Oq\n0\nVA 2\n0 \n
    ms n 1\n5\nma n C9 v\nma n q v\nma n q\nma m q\nma n T30 t v\nma n k Oq c\n => HD\nEX\nNF\nVA 1 t30\n8\nHD kn Oq c5\n
    ms a 1\nx\nma a k\nma n N0 k\nma n Dx\nma n Mx\n
        => HD\nCLIENT_ERROR cannot increment or decrement non-numeric value\nHD kn\nCLIENT_ERROR invalid or duplicate flag\nCLIENT_ERROR invalid mode for ma M token\n
    // Keys that are no words.
    ms YQ== 2 b k c\nhi\nmg YQ== b k v\nma bg== b N0 k\nmd YQ== b k Oz\nmg a\nmg bm9uZQ== b k\n
        => HD kYQ== b c1\nVA 2 kYQ== b\nhi\nHD kbg== b\nHD kYQ== b Oz\nEN\nEN kbm9uZQ== b\n
    mg a b\nms $$$ 2 b\nhi\nmg YQ b v\nmn\n
        => CLIENT_ERROR error decoding key\nCLIENT_ERROR error decoding key\nCLIENT_ERROR error decoding key\nMN\n
    // Mistakes.
    mg\nmd\nma\nmx\nMG a\nme none\nme\n => ERROR\nERROR\nERROR\nERROR\nERROR\nEN\nCLIENT_ERROR bad command line format\n
    mn a\nmg a y\nmg a v v\nmg a Tx\n
        => MN\nCLIENT_ERROR invalid flag\nCLIENT_ERROR duplicate flag\nCLIENT_ERROR bad token in command line format\n
    mg a Oaaaaaaaaaabbbbbbbbbbccccccccccd\nmg a Oaaaaaaaaaabbbbbbbbbbccccccccccde\n
        => EN Oaaaaaaaaaabbbbbbbbbbccccccccccd\nCLIENT_ERROR opaque token too long\n
    ms a\nms a x\nabc\nms a -1\nx\nms a S3\nabc\n
        => CLIENT_ERROR bad command line format\nCLIENT_ERROR bad command line format\nERROR\nCLIENT_ERROR bad command line format\nERROR\nCLIENT_ERROR bad command line format\nERROR\n
    ms a 1 MZ\nx\nms a 1 Mset\nx\nms a 3 Fx\nabc\nms a 2 E99\nxx\nmn\n
        => CLIENT_ERROR invalid mode for ms M token\nCLIENT_ERROR incorrect length for M token\nCLIENT_ERROR bad command line format\nCLIENT_ERROR invalid flag\nMN\n
    ms a 3\nabcd\nmn\n => CLIENT_ERROR bad data chunk\nERROR\nMN\n
    mg §x\nmn\n => CLIENT_ERROR bad command line format\nMN\n
";
